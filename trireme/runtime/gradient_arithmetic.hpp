// What is done to gradients on the host beside exchanging them: collecting those of several runs for one update, the
// mean over groups of cores, clipping their norm, and LARS' rate for each layer. Made by Executable for the steps of
// its schedule that say so.
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
  // Works on the host's side of these buckets, which are all that there are.
  GradientArithmetic(VariableStore& store, std::vector<GradientBucket> buckets, const GradientOptions& options);

  // Whether the gradients of the run that comes are only collected.
  bool collects() const { return collected_ + 1 < options_.accumulate; }
  // Adds up a bucket; in the last run of an update it becomes the mean over the runs.
  void accumulate(int bucket);
  void end_run() { collected_ = collects() ? collected_ + 1 : 0; }
  // All buckets. They are `scale` times what they stand for.
  void transform(double scale);

  double norm() const { return norm_; }  // of the last update's gradients before clipping; 0 if they are not clipped

 private:
  void clip(double scale);
  void scale_layers(double scale);

  VariableStore& store_;
  GradientOptions options_;
  std::vector<GradientBucket> buckets_;
  std::vector<AlignedMemory> sums_;  // [bucket]: of the runs before; empty with one run per update
  int collected_ = 0;                // runs since the last update
  double norm_ = 0;
};

// Makes this group's share of the elements of groups[0] the mean over the groups.
void merge_groups(std::span<float* const> groups, std::int64_t elements, int group);

}  // namespace trireme
