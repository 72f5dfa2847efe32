// Counters of training and evaluation.
#pragma once

#include <cstdint>
#include <optional>

namespace trireme::train {

struct Accuracy {
  std::int64_t samples = 0, top1 = 0, top5 = 0;
  double loss = 0;          // sum of cross-entropies
  std::int64_t broken = 0;  // unusable samples, not counted in `samples`

  double top1_share() const { return samples > 0 ? static_cast<double>(top1) / static_cast<double>(samples) : 0; }
  double top5_share() const { return samples > 0 ? static_cast<double>(top5) / static_cast<double>(samples) : 0; }
  double mean_loss() const { return samples > 0 ? loss / static_cast<double>(samples) : 0; }
  void add(const Accuracy& other);
};

struct Evaluation {
  std::optional<Accuracy> accuracy;  // nothing: this replica does not know it
  bool stopped = false;              // a stop request came before everything was evaluated
};

// The state of dynamic loss scaling after some steps.
struct LossScaleState {
  double scale = 0;
  std::int64_t skipped_updates = 0;
};

// Sums over the steps of an unfinished epoch.
struct EpochSums {
  std::int64_t steps = 0;
  double loss = 0;  // sum of the step losses; each is the mean over all replicas' samples if these run in lock step
  double seconds = 0;
};

}  // namespace trireme::train
