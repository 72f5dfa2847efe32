#include "trireme/optim/schedule.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numbers>

#include "trireme/graph/ops/checks.hpp"

namespace trireme {
namespace {

template <typename... Visitors>
struct Overloaded : Visitors... {
  using Visitors::operator()...;
};

bool is_rate(double value) { return std::isfinite(value) && value > 0; }

double unscaled_rate(const LearningRateSchedule& schedule, double epoch) {
  return std::visit(Overloaded{
                        [&](const ConstantRate&) { return schedule.initial; },
                        [&](const PiecewiseRate& rate) {
                          const auto next = std::upper_bound(rate.boundaries.begin(), rate.boundaries.end(), epoch);
                          return rate.values[next - rate.boundaries.begin()];
                        },
                        [&](const ExponentialRate& rate) {
                          const double periods = epoch / rate.epochs_per_decay;
                          return schedule.initial *
                                 std::pow(rate.decay, rate.staircase ? std::floor(periods) : periods);
                        },
                        [&](const CosineRate& rate) {
                          const double progress = std::min(epoch / rate.total_epochs, 1.0);
                          return rate.minimum + (schedule.initial - rate.minimum) * 0.5 *
                                                    (1.0 + std::cos(std::numbers::pi * progress));
                        },
                    },
                    schedule.shape);
}

// What is wrong with a piecewise rate; empty if valid.
std::string fault_of(const PiecewiseRate& rate) {
  if (rate.values.size() != rate.boundaries.size() + 1) return "expected one more rate than epochs";
  for (const double value : rate.values) {
    if (!is_rate(value)) return fmt::format("rate {} is not a finite number above 0", value);
  }
  double last = 0;
  for (const double boundary : rate.boundaries) {
    if (!std::isfinite(boundary) || boundary <= last) {
      return fmt::format("epoch {} is not greater than {}; epochs must be positive and ascending", boundary, last);
    }
    last = boundary;
  }
  return {};
}

std::string join(const PiecewiseRate& rate) {
  std::string text = fmt::format("{}", rate.values.front());
  for (std::size_t i = 0; i < rate.boundaries.size(); ++i) {
    text += fmt::format(";{};{}", rate.boundaries[i], rate.values[i + 1]);
  }
  return text;
}

void check_shape(const LearningRateSchedule& schedule) {
  std::visit(Overloaded{
                 [](const ConstantRate&) {},
                 [](const PiecewiseRate& rate) {
                   if (const std::string fault = fault_of(rate); !fault.empty()) {
                     bad_input("piecewise learning rate: {}", fault);
                   }
                 },
                 [](const ExponentialRate& rate) {
                   if (!is_rate(rate.decay) || rate.decay > 1) {
                     bad_input("the learning rate's decay is {}, expected above 0 and at most 1", rate.decay);
                   }
                   op::expect_positive(rate.epochs_per_decay, "epochs per decay");
                 },
                 [&](const CosineRate& rate) {
                   op::expect_positive(rate.total_epochs, "total epochs");
                   if (!(rate.minimum >= 0 && rate.minimum <= schedule.initial)) {
                     bad_input("the minimum learning rate is {}, expected between 0 and the initial {}", rate.minimum,
                               schedule.initial);
                   }
                 },
             },
             schedule.shape);
}

double parse_number(std::string_view item, std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(item.data(), item.data() + item.size(), value);
  if (item.empty() || error != std::errc{} || end != item.data() + item.size()) {
    bad_input("piecewise learning rate '{}': '{}' is not a number; expected LR0;E1;LR1;..., for example 0.1;30;0.01",
              text, item);
  }
  return value;
}

}  // namespace

double LearningRateSchedule::at(double step) const {
  const double epoch = step / steps_per_epoch;
  if (epoch >= warmup_epochs) return scale * unscaled_rate(*this, epoch);
  return scale * unscaled_rate(*this, warmup_epochs) * epoch / warmup_epochs;
}

void validate(const LearningRateSchedule& schedule) {
  op::expect_positive(schedule.initial, "the learning rate");
  op::expect_positive(schedule.scale, "the learning rate's scale");
  op::expect_not_negative(schedule.warmup_epochs, "warm-up epochs");
  op::expect_positive(schedule.steps_per_epoch, "steps per epoch");
  check_shape(schedule);
}

PiecewiseRate parse_piecewise(std::string_view text) {
  PiecewiseRate rate;
  bool is_value = true;
  for (std::string_view rest = text;;) {
    const std::size_t end = rest.find(';');
    (is_value ? rate.values : rate.boundaries).push_back(parse_number(rest.substr(0, end), text));
    is_value = !is_value;
    if (end == std::string_view::npos) break;
    rest.remove_prefix(end + 1);
  }
  if (const std::string fault = fault_of(rate); !fault.empty()) {
    bad_input("piecewise learning rate '{}': {}; expected LR0;E1;LR1;..., for example 0.1;30;0.01", text, fault);
  }
  return rate;
}

double linear_scaling(std::int64_t global_batch, std::int64_t reference_batch) {
  if (global_batch < 1) bad_input("the global batch is {}, expected 1 or more", global_batch);
  if (reference_batch < 1) bad_input("the reference batch is {}, expected 1 or more", reference_batch);
  return static_cast<double>(global_batch) / static_cast<double>(reference_batch);
}

std::string to_string(const LearningRateSchedule& schedule) {
  std::string text = std::visit(
      Overloaded{
          [&](const ConstantRate&) { return fmt::format("constant {}", schedule.initial); },
          [](const PiecewiseRate& rate) { return "piecewise " + join(rate); },
          [&](const ExponentialRate& rate) {
            return fmt::format("exponential {} x {} every {} epochs{}", schedule.initial, rate.decay,
                               rate.epochs_per_decay, rate.staircase ? " (staircase)" : "");
          },
          [&](const CosineRate& rate) {
            return fmt::format("cosine {} to {} over {} epochs", schedule.initial, rate.minimum, rate.total_epochs);
          },
      },
      schedule.shape);
  if (schedule.scale != 1) text += fmt::format(", scaled by {}", schedule.scale);
  if (schedule.warmup_epochs > 0) text += fmt::format(", {} epochs of warm-up", schedule.warmup_epochs);
  return text;
}

}  // namespace trireme
