// Host-side accumulation of gradients, mean over groups, clipping and LARS rates. Made by Executable if scheduled.
#pragma once

#include <span>
#include <vector>

#include "trireme/base/aligned_memory.hpp"
#include "trireme/plan/schedule.hpp"
#include "trireme/runtime/gradient_exchange.hpp"
#include "trireme/runtime/variable_store.hpp"

namespace trireme {

class GradientArithmetic {
 public:
  // Works on the host copies of these buckets, which must be all. options.accumulate counts the micro-batches of an
  // update, of which each run has this many.
  GradientArithmetic(VariableStore& store, std::vector<GradientBucket> buckets, const GradientOptions& options,
                     int micro_batches);

  bool collects() const { return (runs_ + 1) * micro_batches_ < options_.accumulate; }
  // Adds up a bucket; with the last micro-batch of an update it becomes their mean.
  void accumulate(int bucket);
  void end_run() { runs_ = collects() ? runs_ + 1 : 0; }
  // Clips and scales all buckets, whose values include the factor `scale`.
  void transform(double scale);

  double norm() const { return norm_; }  // of the last update's gradients before clipping; 0 if not clipped

 private:
  void clip(double scale);
  void scale_layers(double scale);

  VariableStore& store_;
  GradientOptions options_;
  std::vector<GradientBucket> buckets_;
  int micro_batches_;
  struct Sum {  // of earlier micro-batches of an update
    AlignedMemory memory;
    int count = 0;
  };
  std::vector<Sum> sums_;  // [bucket]; empty if an update has one micro-batch
  int runs_ = 0;           // since the last update
  double norm_ = 0;
};

// Turns this group's share of the elements of groups[0] into the mean over the groups.
void merge_groups(std::span<float* const> groups, std::int64_t elements, int group);

}  // namespace trireme
