#include "trireme/graph/ops/update.hpp"

#include "trireme/graph/ops/checks.hpp"

namespace trireme::op {
namespace {

void check_pair(Types inputs) {
  expect_inputs(inputs, {"variable", "value"});
  expect_shape(inputs[1], "value", inputs[0].shape, "the variable's shape");
}

}  // namespace

void validate(const OptimizerRule& rule) {
  for (const RuleNumber& number : kRuleNumbers) {
    const float value = rule.*number.member;
    switch (number.range) {
      case NumberRange::not_negative:
        expect_not_negative(value, number.name);
        break;
      case NumberRange::positive:
        expect_positive(value, number.name);
        break;
      case NumberRange::share:
        expect_in(value, 0, 1, number.name);
        break;
    }
  }
}

std::vector<TensorType> infer(const ApplyGradients& op, Types inputs) {
  validate(op.rule);
  if (inputs.size() < 3 || inputs.size() % 2 == 0) {
    bad_input("expected learning_rate, then variable and gradient for each variable; got {} inputs", inputs.size());
  }
  std::vector<InputSpec> specs{"learning_rate"};
  while (specs.size() < inputs.size()) specs.insert(specs.end(), {"variable", "gradient"});
  expect_inputs(inputs, specs);
  if (inputs[0].shape != Shape{2}) expect_rank(inputs[0], "learning_rate", 0, "a scalar");
  for (std::size_t i = 1; i < inputs.size(); i += 2) {
    expect_shape(inputs[i + 1], "gradient", inputs[i].shape, "the variable's shape");
  }
  return {};
}

std::vector<TensorType> infer(const MovingAverage& op, Types inputs) {
  if (op.scales.empty() || inputs.size() != 2 * op.scales.size()) {
    bad_input("expected variable and value for each of {} scales; got {} inputs", op.scales.size(), inputs.size());
  }
  for (std::size_t pair = 0; pair < op.scales.size(); ++pair) {
    check_pair(inputs.subspan(2 * pair, 2));
    expect_finite(op.scales[pair], "scale");
  }
  if (!(op.decay >= 0 && op.decay <= 1)) bad_input("decay is {}, expected at least 0 and at most 1", op.decay);
  return {};
}

std::vector<TensorType> infer(const Assign&, Types inputs) {
  check_pair(inputs);
  return {};
}

std::vector<TensorType> infer(const UnscaledRates&, Types inputs) {
  if (inputs.size() < 3) {
    bad_input("expected learning_rate, scale and the gradients of all variables; got {} inputs", inputs.size());
  }
  std::vector<InputSpec> specs{"learning_rate", "scale"};
  specs.resize(inputs.size(), "gradient");
  expect_inputs(inputs, specs);
  expect_rank(inputs[0], "learning_rate", 0, "a scalar");
  expect_rank(inputs[1], "scale", 0, "a scalar");
  return {f32({2})};
}

std::vector<TensorType> infer(const UpdateLossScale& op, Types inputs) {
  expect_inputs(inputs, {"scale", "good_updates", "skipped_updates", "rates"});
  expect_rank(inputs[0], "scale", 0, "a scalar");
  expect_rank(inputs[1], "good_updates", 0, "a scalar");
  expect_rank(inputs[2], "skipped_updates", 0, "a scalar");
  expect_shape(inputs[3], "rates", {2}, "what unscaled_rates gives");
  expect_positive(static_cast<double>(op.growth_interval), "growth_interval");
  return {};
}

Cost cost(const ApplyGradients& op, Types inputs, Types) {
  Cost total{0, traffic(inputs, {})};
  const double flops = info(op.rule.kind).flops + (op.rule.weight_decay == 0 ? 0 : 2);
  for (std::size_t i = 1; i < inputs.size(); i += 2) {
    total.flops += flops * elements(inputs[i]);
    // The value is written, each state read and written.
    total.bytes += (1.0 + 2.0 * state_count(op.rule.kind)) * static_cast<double>(inputs[i].bytes());
  }
  return total;
}

Cost cost(const MovingAverage&, Types inputs, Types) {
  Cost total{0, traffic(inputs, {})};
  for (std::size_t i = 0; i < inputs.size(); i += 2) {
    total.flops += 3.0 * elements(inputs[i]);
    total.bytes += static_cast<double>(inputs[i].bytes());  // the value is written
  }
  return total;
}

// The old value is not read.
Cost cost(const Assign&, Types inputs, Types) { return {0, traffic(inputs, {})}; }

Cost cost(const UnscaledRates&, Types inputs, Types outputs) {
  Cost total{0, traffic(inputs, outputs)};
  for (const TensorType& gradient : inputs.subspan(2)) total.flops += elements(gradient);
  return total;
}

Cost cost(const UpdateLossScale&, Types inputs, Types) { return {2, traffic(inputs, inputs.first(3))}; }

}  // namespace trireme::op
