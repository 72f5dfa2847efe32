// What a training run is: TrainingOptions as resolve() has checked and completed them. Run by Trainer.
#pragma once

#include <cstdint>
#include <string>

#include "trireme/plan/schedule.hpp"
#include "trireme/train/step_config.hpp"

namespace trireme::train {

enum class EvaluateOn : std::uint8_t { nobody, first, all };

struct TrainingConfig {
  StepConfig step;
  double epochs = 1;
  std::int64_t reference_batch = 0;
  GradientOptions gradients;
  double average_decay = 0;  // 0: no averages
  EvaluateOn evaluate_on = EvaluateOn::all;
  std::int64_t display_every = 10;
  std::int64_t evaluate_every = 1;
  std::int64_t eval_batch_size = 32;
  double target_accuracy = 0;
  std::string checkpoint_dir;  // empty: none are kept
  std::int64_t checkpoint_every = 0;
  int keep_checkpoints = 3;
  bool resume = false;
  bool allow_other_data = false;  // to go on with, than the checkpoint's

  std::int64_t samples_per_update() const { return step.global_batch_size() * gradients.accumulate; }
};

// Throws Error(bad_input) that names the option, what was given and what is legal.
TrainingConfig resolve(const TrainingOptions& options, const comm::JobSize& job = {});

Json to_json(const TrainingConfig& config);

}  // namespace trireme::train
