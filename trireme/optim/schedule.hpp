// Learning rate as a function of the step. A schedule is data, parsed from the command line and printed in records.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace trireme {

struct ConstantRate {};
// Rate values[i] from epoch boundaries[i−1] on: "0.1;30;0.01;60;0.001". One value more than boundaries; the schedule's
// initial rate is not used.
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
  double warmup_epochs = 0;    // linear from 0 at step 0 to what the shape says at their end
  double scale = 1;            // of every rate, by the linear scaling rule: global batch / reference batch
  double steps_per_epoch = 1;  // samples / samples per step: an epoch may end within a step

  // The rate of a step, counted from 0. The schedule must be valid.
  double at(std::int64_t step) const;
};

// Throws Error(bad_input) for a rate that is not finite or not above 0, and for any other number outside its range.
void validate(const LearningRateSchedule& schedule);

// "LR0;E1;LR1;...": a rate, then epoch and rate for each change. Throws Error(bad_input) for what is not a number,
// rates that are not above 0 and epochs that do not ascend, quoting the text.
PiecewiseRate parse_piecewise(std::string_view text);
// global_batch / reference_batch, the factor of the linear scaling rule.
double linear_scaling(std::int64_t global_batch, std::int64_t reference_batch = 256);
std::string to_string(const LearningRateSchedule& schedule);

}  // namespace trireme
