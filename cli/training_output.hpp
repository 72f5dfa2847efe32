// What a training run shows and writes: lines, a progress bar, a CSV file, TensorBoard curves, and the record. Used by
// `trireme train`, on the first worker.
#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "trireme/train/trainer.hpp"

namespace trireme::cli {

// Error(bad_input) if one could not be written. Creates nothing: the run may still be rejected for other reasons.
void check(const train::OutputOptions& files);

struct TrainOutcome {
  train::TrainingEnd end = train::TrainingEnd::done;
  std::vector<std::string> problems = {};  // what could not be written
};

TrainOutcome run_with_output(train::Trainer& trainer, const train::OutputOptions& files, const std::stop_token& stop);

}  // namespace trireme::cli
