#include "trireme/graph/ops/loss_scale.hpp"

#include "trireme/graph/ops/checks.hpp"

namespace trireme::op {

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

Cost cost(const UnscaledRates&, Types inputs, Types outputs) {
  Cost total{0, traffic(inputs, outputs)};
  for (const TensorType& gradient : inputs.subspan(2)) total.flops += elements(gradient);
  return total;
}

Cost cost(const UpdateLossScale&, Types inputs, Types) { return {2, traffic(inputs, inputs.first(3))}; }

}  // namespace trireme::op
