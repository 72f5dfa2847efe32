// Learning rate as a function of the step: data, parsed from the command line and printed in records.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace trireme {

struct ConstantRate {};
// Rate values[i] from epoch boundaries[i−1] on: "0.1;30;0.01;60;0.001". Does not use the schedule's initial rate.
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
struct CosineRate {  // from initial down to minimum over total_epochs
  double total_epochs = 90;
  double minimum = 0;
};

struct LearningRateSchedule {
  double initial = 0.01;
  std::variant<ConstantRate, PiecewiseRate, ExponentialRate, CosineRate> shape = ConstantRate{};
  double warmup_epochs = 0;    // linear from 0 at step 0 to the shape's rate at their end
  double scale = 1;            // of every rate, by the linear scaling rule: global batch / reference batch
  double steps_per_epoch = 1;  // samples / samples per step: an epoch may end within a step

  double at(double step) const;  // steps count from 0, with fractions; the schedule must be valid
};

// Error(bad_input) for a rate that is not finite or not above 0, or any other number out of range.
void validate(const LearningRateSchedule& schedule);

// "LR0;E1;LR1;...". Error(bad_input) quotes the text: not a number, rate not above 0, or epochs that do not ascend.
PiecewiseRate parse_piecewise(std::string_view text);
// global_batch / reference_batch, the factor of the linear scaling rule.
double linear_scaling(std::int64_t global_batch, std::int64_t reference_batch = 256);
std::string to_string(const LearningRateSchedule& schedule);

}  // namespace trireme
