#include "trireme/parallel/optimizer_shard.hpp"

#include <algorithm>

#include "trireme/comm/collectives.hpp"
#include "trireme/optim/apply_rule.hpp"

namespace trireme::parallel {
namespace {

constexpr int kTag = 1;

}  // namespace

OptimizerShard::OptimizerShard(comm::Communicator& communicator, std::span<const GradientBucket> buckets)
    : communicator_(communicator) {
  const auto own = [&](std::span<float> part) {
    return comm::slice_of(part, communicator.size(), communicator.rank());
  };
  std::size_t floats = 0;
  for (const GradientBucket& bucket : buckets) {
    std::vector<Slice>& slices = slices_.emplace_back();
    for (std::size_t part = 0; part < bucket.parts.size(); ++part) {
      slices.push_back({.values = own(bucket.values[part]), .gradients = own(bucket.parts[part])});
      for (const auto& state : bucket.states) slices.back().whole.push_back(state[part]);
      floats += slices.back().values.size() * bucket.states.size();
    }
  }
  memory_ = AlignedMemory(static_cast<std::int64_t>(floats * sizeof(float)));
  auto* next = static_cast<float*>(memory_.at(0));
  for (std::vector<Slice>& slices : slices_) {
    for (Slice& slice : slices) {
      for (std::size_t state = 0; state < slice.whole.size(); ++state, next += slice.values.size()) {
        slice.states.push_back(next);
      }
    }
  }
  communicator_.set_context("dividing the optimizer's state");
  move(To::ranks);
  discard();
}

void OptimizerShard::update(const GradientBucket& bucket, int index, float learning_rate, std::uint64_t step) const {
  const op::Rates<float> rates = op::rates_at(bucket.rule, learning_rate, step);
  for (const Slice& slice : slices_[index]) {
    apply_rule(bucket.rule, rates, {.values = slice.values.data(), .states = slice.states}, slice.gradients.data(),
               {.begin = 0, .count = std::ssize(slice.values)});
  }
}

void OptimizerShard::collect() {
  communicator_.set_context("collecting the optimizer's state");
  move(To::first);
}

void OptimizerShard::discard() const {
  for (const std::vector<Slice>& slices : slices_) {
    for (const Slice& slice : slices) {
      for (const std::span<float> whole : slice.whole) discard_pages(std::as_writable_bytes(whole));
    }
  }
}

// Between the slices of all ranks and rank 0's session.
void OptimizerShard::move(To to) {
  const int ranks = communicator_.size(), rank = communicator_.rank();
  const auto transfer = [&](std::span<float> values, int peer, bool sends) {
    if (values.empty()) return;
    if (sends) {
      communicator_.send(std::as_bytes(values), peer, kTag);
    } else {
      communicator_.receive(std::as_writable_bytes(values), peer, kTag);
    }
  };
  for (const std::vector<Slice>& slices : slices_) {
    for (const Slice& slice : slices) {
      for (std::size_t state = 0; state < slice.states.size(); ++state) {
        const std::span<float> own(slice.states[state], slice.values.size());
        if (rank > 0) {
          transfer(own, 0, to == To::first);
          continue;
        }
        const std::span<float> there = comm::slice_of(slice.whole[state], ranks, 0);
        if (to == To::first) {
          std::ranges::copy(own, there.begin());
        } else {
          std::ranges::copy(there, own.begin());
        }
        for (int other = 1; other < ranks; ++other) {
          transfer(comm::slice_of(slice.whole[state], ranks, other), other, to == To::ranks);
        }
      }
    }
  }
}

}  // namespace trireme::parallel
