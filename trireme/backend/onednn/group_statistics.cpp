#include "trireme/backend/onednn/group_statistics.hpp"

namespace trireme::onednn {

std::int64_t told_bytes(const ChannelView& view) {
  return 2 * view.channels * static_cast<std::int64_t>(sizeof(double));
}

Moments joined_moments(const Operands& operands, const RunContext& context, std::int64_t channel) {
  Moments all;
  for (int group = 0; group < context.statistics_groups; ++group) {
    all.mean += operands.shared<double>(group)[2 * channel] / context.statistics_groups;
  }
  for (int group = 0; group < context.statistics_groups; ++group) {
    const double* told = operands.shared<double>(group) + 2 * channel;
    const double off = told[0] - all.mean;
    all.variance += (told[1] + off * off) / context.statistics_groups;
  }
  return all;
}

Sums joined_sums(const Operands& operands, const RunContext& context, std::int64_t channel) {
  Sums all;
  for (int group = 0; group < context.statistics_groups; ++group) {
    const double* told = operands.shared<double>(group) + 2 * channel;
    all.first += told[0];
    all.second += told[1];
  }
  return all;
}

}  // namespace trireme::onednn
