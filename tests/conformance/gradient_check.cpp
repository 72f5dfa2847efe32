#include "tests/conformance/gradient_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "trireme/backend/registry.hpp"
#include "trireme/base/random.hpp"
#include "trireme/runtime/session.hpp"
#include "trireme/runtime/variable_store.hpp"

namespace trireme::testkit {
namespace {

// A power of two near 1e-2: moving a value of about 1 by it is exact in float32, up to the last bits.
// The central difference (L(x + h) − L(x − h)) / 2h then has two errors. Outputs are rounded to float32 (6e-8 of their
// size), and L is summed from them in float64: about 6e-8·sum|w·output| / 2h, 4e-6 per unit of output. The third
// derivative adds h²/6 = 1e-5 times it. The tolerance, relative to the largest element of a variable's gradient, leaves
// room for outputs and derivatives of some tens.
constexpr float kStep = 1.0f / 128;
constexpr double kTolerance = 1e-3;
constexpr double kSmallestGradient = 1e-2;
constexpr float kKinkMargin = 4 * kStep;

HostTensor uniform_values(Shape shape, float low, float high, std::uint64_t key) {
  HostTensor values(TensorType{DataType::f32, std::move(shape)});
  fill_uniform(values.f32(), low, high, key);
  return values;
}

// A weight for each element of an output, of both signs and none small, so that no two elements can stand in for each
// other and none is lost.
HostTensor random_weights(const Shape& shape, std::uint64_t key) {
  HostTensor weights = uniform_values(shape, -1, 1, key);
  for (float& weight : weights.f32()) weight += weight < 0 ? -0.5f : 0.5f;
  return weights;
}

// The weighted sum of the outputs.
struct Loss {
  std::vector<Tensor> outputs;
  std::vector<HostTensor> weights;
  Tensor scalar;

  Loss(Graph& graph, std::vector<Tensor> outputs_) : outputs(std::move(outputs_)) {
    for (const Tensor& output : outputs) {
      weights.push_back(random_weights(output.shape(), random_key(weights.size(), "weights")));
      const Tensor term = reduce_sum(output * constant(graph, weights.back()));
      scalar = scalar ? scalar + term : term;
    }
  }

  // The same in float64, from fetched outputs.
  double evaluate(Session& session) const {
    const std::vector<HostTensor> values = session.run(outputs);
    double sum = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::span<const float> v = values[i].f32(), w = weights[i].f32();
      for (std::size_t e = 0; e < v.size(); ++e) sum += static_cast<double>(v[e]) * w[e];
    }
    return sum;
  }
};

std::vector<double> numeric_gradient(Session& session, const Loss& loss, const CaseBuilder::Checked& checked) {
  std::vector<double> gradient;
  HostTensor moved = checked.value;
  for (float& element : moved.f32()) {
    const float original = element;
    const float above = original + kStep, below = original - kStep;
    element = above;
    session.assign(checked.variable, moved);
    const double loss_above = loss.evaluate(session);
    element = below;
    session.assign(checked.variable, moved);
    const double loss_below = loss.evaluate(session);
    element = original;
    gradient.push_back((loss_above - loss_below) / (static_cast<double>(above) - below));
  }
  session.assign(checked.variable, moved);
  return gradient;
}

void compare(const std::string& name, std::span<const float> analytic, const std::vector<double>& numeric,
             std::vector<std::string>& mismatches) {
  double largest = 0;
  for (const double value : numeric) largest = std::max(largest, std::abs(value));
  if (!(largest > kSmallestGradient))
    mismatches.push_back(fmt::format("{}: moves the outputs by {} only", name, largest));
  for (std::size_t i = 0; i < numeric.size(); ++i) {
    // "Not within", so that a NaN is a mismatch.
    if (!(std::abs(analytic[i] - numeric[i]) <= kTolerance * largest)) {
      mismatches.push_back(fmt::format("{}[{}]: gradient {}, finite difference {}", name, i, analytic[i], numeric[i]));
    }
  }
}

void check_kinks(Session& session, const std::vector<Tensor>& kinks, std::vector<std::string>& mismatches) {
  if (kinks.empty()) return;
  for (const HostTensor& values : session.run(kinks)) {
    for (const float value : values.f32()) {
      if (std::abs(value) < kKinkMargin)
        mismatches.push_back(fmt::format("a value of {} is too near to a kink", value));
    }
  }
}

}  // namespace

std::uint64_t CaseBuilder::next_key() { return random_key(keys_++, "gradient check"); }

Tensor CaseBuilder::checked(HostTensor value) {
  const Tensor tensor = variable(graph, value.shape(), op::Initializer::constant(0));
  variables.push_back({tensor, std::move(value)});
  return tensor;
}

Tensor CaseBuilder::uniform(Shape shape, float low, float high) {
  return checked(uniform_values(std::move(shape), low, high, next_key()));
}

Tensor CaseBuilder::away_from_zero(Shape shape) {
  HostTensor values = uniform_values(std::move(shape), -1, 1, next_key());
  for (float& value : values.f32()) value += value < 0 ? -0.2f : 0.2f;
  return checked(std::move(values));
}

Tensor CaseBuilder::distinct(Shape shape, float offset) {
  HostTensor values = uniform_values(std::move(shape), 0, 1, next_key());
  const std::vector<float> drawn(values.f32().begin(), values.f32().end());
  const auto half = static_cast<float>(drawn.size() / 2);
  for (std::size_t i = 0; i < drawn.size(); ++i) {
    const auto rank = std::ranges::count_if(drawn, [&](float other) { return other < drawn[i]; });
    values.f32()[i] = offset + 0.1f * (static_cast<float>(rank) - half);
  }
  return checked(std::move(values));
}

Tensor CaseBuilder::fixed(Shape shape, float low, float high) {
  return constant(graph, uniform_values(std::move(shape), low, high, next_key()));
}

Tensor CaseBuilder::labels(const std::vector<std::int32_t>& values) {
  return constant(graph, HostTensor(Shape{std::ssize(values)}, std::span(values)));
}

Tensor CaseBuilder::kink(Tensor tensor) {
  kinks.push_back(tensor);
  return tensor;
}

std::vector<std::string> gradient_mismatches(const GradientCase& gradient_case, const std::string& backend,
                                             const CompileOptions& options) {
  Graph graph;
  CaseBuilder builder(graph);
  const Loss loss(graph, gradient_case.build(builder));
  std::vector<Tensor> targets;
  for (const CaseBuilder::Checked& checked : builder.variables) targets.push_back(checked.variable);
  const std::vector<Tensor> analytic = gradients(graph, loss.scalar, targets);

  const std::shared_ptr<Backend> kernels = make_backend(backend);
  SessionOptions session_options;
  session_options.compile = options;
  Session session(graph, *kernels, session_options);
  session.prepare(analytic);  // before the first assignment, so that the variables get the layouts that it wants
  for (const CaseBuilder::Checked& checked : builder.variables) session.assign(checked.variable, checked.value);

  std::vector<std::string> mismatches;
  check_kinks(session, builder.kinks, mismatches);
  const std::vector<HostTensor> fetched = session.run(analytic);
  for (std::size_t i = 0; i < targets.size(); ++i) {
    compare(graph.node(targets[i]).name, fetched[i].f32(), numeric_gradient(session, loss, builder.variables[i]),
            mismatches);
  }
  return mismatches;
}

}  // namespace trireme::testkit
