// The configuration of a training run: TrainingOptions checked and completed by resolve(). Run by Trainer.
#pragma once

#include <cstdint>
#include <string>

#include "trireme/plan/schedule.hpp"
#include "trireme/train/step_config.hpp"

namespace trireme::train {

enum class EvaluateOn : std::uint8_t { nobody, first, all };

struct TrainingConfig : LoopOptions {
  StepConfig step;
  GradientOptions gradients;

  EvaluateOn evaluates() const;
  std::int64_t evaluation_batch() const { return eval_batch_size.value_or(step.batch_size); }
  std::int64_t samples_per_update() const { return step.global_batch_size() * gradients.accumulate; }
};

// Error(bad_input) names the option, the value given and what is legal.
TrainingConfig resolve(const TrainingOptions& options, const comm::JobSize& job = {});

Json to_json(const TrainingConfig& config);

}  // namespace trireme::train
