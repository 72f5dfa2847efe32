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
  // Works on the host copies of these buckets, which must be all.
  GradientArithmetic(VariableStore& store, std::vector<GradientBucket> buckets, const GradientOptions& options);

  bool collects() const { return collected_ + 1 < options_.accumulate; }
  // Adds up a bucket; in the last run of an update it becomes the mean over the runs.
  void accumulate(int bucket);
  void end_run() { collected_ = collects() ? collected_ + 1 : 0; }
  // Clips and scales all buckets, whose values include the factor `scale`.
  void transform(double scale);

  double norm() const { return norm_; }  // of the last update's gradients before clipping; 0 if not clipped

 private:
  void clip(double scale);
  void scale_layers(double scale);

  VariableStore& store_;
  GradientOptions options_;
  std::vector<GradientBucket> buckets_;
  std::vector<AlignedMemory> sums_;  // [bucket]: of earlier runs; empty with one run per update
  int collected_ = 0;                // runs since the last update
  double norm_ = 0;
};

// Turns this group's share of the elements of groups[0] into the mean over the groups.
void merge_groups(std::span<float* const> groups, std::int64_t elements, int group);

}  // namespace trireme
