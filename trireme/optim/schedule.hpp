// Learning rate as a function of the step. A schedule is data, parsed from the command line and printed in records.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace trireme {

struct ConstantRate {};
// Rate values[i] from epoch boundaries[i−1] on: "0.1;30;0.01;60;0.001".
struct PiecewiseRate {
  std::vector<double> boundaries;
  std::vector<double> values;
};
// initial · decay^(epoch / epochs_per_decay); in steps of whole periods if staircase.
struct ExponentialRate {
  double decay = 0.94;
  double epochs_per_decay = 2;
  bool staircase = true;
};
// From initial down to minimum over total_epochs.
struct CosineRate {
  double total_epochs = 90;
  double minimum = 0;
};

struct LearningRateSchedule {
  double initial = 0.01;
  std::variant<ConstantRate, PiecewiseRate, ExponentialRate, CosineRate> shape = ConstantRate{};
  double warmup_epochs = 0;       // linear from 0
  double scale = 1;               // of the linear scaling rule: global batch / reference batch
  std::int64_t steps_per_epoch = 1;

  double at(std::int64_t step) const;
};

// Throws Error(bad_input) for NaN, negative or unordered numbers, quoting the text.
PiecewiseRate parse_piecewise(std::string_view text);
double linear_scaling(std::int64_t global_batch, std::int64_t reference_batch = 256);
// tf_cnn_benchmarks' schedule for ResNet: 0.128 · global batch/256, ×0.1 at epochs 30, 60, 80, 90, five epochs of warm-up.
LearningRateSchedule resnet_schedule(std::int64_t global_batch, std::int64_t steps_per_epoch);
std::string to_string(const LearningRateSchedule& schedule);

}  // namespace trireme
