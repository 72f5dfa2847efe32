// Over how many groups of cores a step's batch is best split: found by running a few steps of each, on a part of the
// batch where steps are long, once per network, batch, machine and number of threads; the times are kept with those of
// the kernels. Used by Worker.
#pragma once

#include <string>
#include <vector>

#include "trireme/backend/tuner.hpp"
#include "trireme/perf/peak.hpp"
#include "trireme/train/step_config.hpp"

namespace trireme::train {

struct SplitTrial {
  int groups = 1;
  double images_per_second = 0;
};

struct SplitChoice {
  int groups = 1;
  std::vector<SplitTrial> trials;  // empty: there was nothing to choose, or it was not to be measured
};

// The numbers of groups that threads and batch can be divided by, from 1.
std::vector<int> possible_splits(int threads, std::int64_t batch_size);

// Of one or more trials, by rising numbers of groups: the fewest groups that no other is faster than by more than the
// noise, because every group needs memory.
int best_groups(const std::vector<SplitTrial>& trials);

// threads: all that compute. Splits that would need most of the machine's free memory, or cannot be run, are left out.
SplitChoice choose_split(const StepConfig& config, int threads, const TuningOptions& tuning, const perf::Peak& peak);

}  // namespace trireme::train
