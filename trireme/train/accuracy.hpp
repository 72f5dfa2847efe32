// What training and evaluation count.
#pragma once

#include <cstdint>
#include <optional>

namespace trireme::train {

struct Accuracy {
  std::int64_t samples = 0, top1 = 0, top5 = 0;
  double loss = 0;          // sum of cross-entropies
  std::int64_t broken = 0;  // that could not be used and are not among the samples

  double top1_share() const { return samples > 0 ? static_cast<double>(top1) / static_cast<double>(samples) : 0; }
  double top5_share() const { return samples > 0 ? static_cast<double>(top5) / static_cast<double>(samples) : 0; }
  double mean_loss() const { return samples > 0 ? loss / static_cast<double>(samples) : 0; }
  void add(const Accuracy& other);
};

struct Evaluation {
  std::optional<Accuracy> accuracy;  // nothing: this replica does not know
  bool stopped = false;              // it was asked to stop before all was evaluated
};

// Where dynamic loss scaling is after some steps.
struct LossScaleState {
  double scale = 0;
  std::int64_t skipped_updates = 0;
};

// Of the steps of an epoch that is not complete.
struct EpochSums {
  std::int64_t steps = 0;
  double loss = 0;  // sum of their losses; of all replicas' samples (the mean over them) if these are in lock step
  double seconds = 0;
};

}  // namespace trireme::train
