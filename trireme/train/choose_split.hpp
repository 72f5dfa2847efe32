// Finds the best number of core groups for a step's batch by timing a few steps of each (of part of the batch if long),
// once per network, batch, machine and thread count; kept with the kernel timings. Used by Worker.
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
  std::vector<SplitTrial> trials;  // empty: no choice, or measuring was not allowed
};

std::vector<int> possible_splits(int threads, std::int64_t batch_size);  // those that divide both, from 1

// The fewest groups (every group needs memory) that no other beats by more than the noise. `trials`: ascending.
int best_groups(const std::vector<SplitTrial>& trials);

// threads: all compute threads. Skips splits that need most of the machine's free memory or cannot run.
SplitChoice choose_split(const StepConfig& config, int threads, const TuningOptions& tuning, const perf::Peak& peak);

}  // namespace trireme::train
