// Batch statistics over all groups of cores that a batch is split over, or over all replicas (see
// RunContext::statistics_groups): each tells its own, they meet, and each computes the same totals. Called inside an
// OpenMP region by all its threads.
#pragma once

#include "trireme/backend/function_kernel.hpp"
#include "trireme/backend/onednn/batch_statistics.hpp"

namespace trireme::onednn {

// Bytes for what one group tells: two numbers per channel.
std::int64_t told_bytes(const ChannelView& view);

// Publishes of(channel), a pair of doubles of this group, for every channel, and waits for the other groups. Nothing to
// do for a single group.
template <typename OfChannel>
void tell_groups(const ChannelView& view, const Operands& operands, const RunContext& context, OfChannel of) {
  if (context.statistics_groups == 1) return;
  auto* mine = operands.shared<double>(context.statistics_group);
#pragma omp for schedule(static)
  for (std::int64_t channel = 0; channel < view.channels; ++channel) {
    const auto [first, second] = of(channel);
    mine[2 * channel] = first;
    mine[2 * channel + 1] = second;
  }
#pragma omp single
  context.share_statistics(operands.shared_blocks(), told_bytes(view));
}

// The statistics of one channel over all groups from those of each; every group has the same number of samples.
Moments joined_moments(const Operands& operands, const RunContext& context, std::int64_t channel);
Sums joined_sums(const Operands& operands, const RunContext& context, std::int64_t channel);

}  // namespace trireme::onednn
