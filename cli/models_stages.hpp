// How a network would be cut into the stages of a pipeline, for `trireme models --plan --stages`.
#pragma once

#include <string>

#include "trireme/backend/tuner.hpp"
#include "trireme/train/step_config.hpp"

namespace trireme::cli {

struct StagesRequest {
  int stages = 0;  // 0: not given
  int micro_batches = 8;
  std::string schedule = "1f1b";
};

void show_stages(const train::StepConfig& config, const StagesRequest& request, const TuningOptions& tuning, bool json);

}  // namespace trireme::cli
