// The configuration of a training run: TrainingOptions checked and completed by resolve(). Run by Trainer.
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
  std::string checkpoint_dir;  // empty: none are written
  std::int64_t checkpoint_every = 0;
  int keep_checkpoints = 3;
  bool resume = false;
  bool allow_other_data = false;  // than the checkpoint's, when resuming

  std::int64_t samples_per_update() const { return step.global_batch_size() * gradients.accumulate; }
};

// Error(bad_input) names the option, the value given and what is legal.
TrainingConfig resolve(const TrainingOptions& options, const comm::JobSize& job = {});

Json to_json(const TrainingConfig& config);

}  // namespace trireme::train
