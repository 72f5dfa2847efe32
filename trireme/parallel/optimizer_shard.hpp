// A replica's share of the optimizer's state, if replicas divide it (ZeRO stage 1: Rajbhandari et al. 2020): of each
// part of a bucket, the rank's slice_of() it. Made by AllReduceSync, whose thread updates that slice of the variables.
#pragma once

#include <span>
#include <vector>

#include "trireme/base/aligned_memory.hpp"
#include "trireme/comm/communicator.hpp"
#include "trireme/runtime/gradient_exchange.hpp"

namespace trireme::parallel {

class OptimizerShard {
 public:
  // Collective: takes over rank 0's state; the sessions keep none.
  OptimizerShard(comm::Communicator& communicator, std::span<const GradientBucket> buckets);

  // Updates this rank's slices of a bucket's variables with the mean gradients there.
  void update(const GradientBucket& bucket, int index, float learning_rate, std::uint64_t step) const;

  void collect();        // collective: rank 0's session has the whole state until discard()
  void discard() const;  // frees the memory of the session's state
  std::int64_t bytes() const { return memory_.bytes(); }

 private:
  struct Slice {
    std::span<float> values, gradients;
    std::vector<float*> states = {};
    std::vector<std::span<float>> whole = {};  // states of the part in the session
  };
  enum class To { ranks, first };
  void move(To to);

  comm::Communicator& communicator_;
  AlignedMemory memory_;
  std::vector<std::vector<Slice>> slices_;  // [bucket][part]
};

}  // namespace trireme::parallel
