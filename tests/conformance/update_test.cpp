// Operations that write variables, each backend against the reference.
#include <gtest/gtest.h>

#include <limits>

#include "operation_check.hpp"
#include "trireme/base/bfloat16.hpp"
#include "trireme/base/float16.hpp"
#include "trireme/optim/optimizer.hpp"

namespace trireme::testkit {
namespace {

using op::OptimizerKind;

HostTensor rates_of(float learning_rate, float gradient_factor) {
  return {{2}, std::vector<float>{learning_rate, gradient_factor}};
}

// Several updates in a row, so that the state that each leaves is checked too.
void expect_same_updates(const OperationCase& operation, const Variant& variant, int updates,
                         const Tolerance& tolerance) {
  const auto backend = tested_backend();
  if (!backend) GTEST_SKIP() << "nothing to test: see tested_backend()";
  KernelRun reference(*make_backend("reference"), operation, {.name = "reference"});
  KernelRun tested(*backend, operation, variant);
  for (int step = 0; step < updates; ++step) {
    const RunContext context{.step = static_cast<std::uint64_t>(step)};
    reference.run(context);
    tested.run(context);
    for (std::size_t i = 0; i < operation.values().size(); ++i) {
      if (!operation.is_variable(i)) continue;
      EXPECT_EQ(difference(tested.input(i), reference.input(i), tolerance), "")
          << operation.describe() << " | input " << i << " after " << step + 1;
    }
    const auto* apply = operation.node().as<op::ApplyGradients>();
    if (apply == nullptr) continue;
    for (std::size_t pair = 0; 2 * pair + 1 < operation.values().size(); ++pair) {
      for (int s = 0; s < op::state_count(apply->rule.kind); ++s) {
        EXPECT_EQ(difference(tested.state(pair, s), reference.state(pair, s), tolerance), "")
            << operation.describe() << " | state " << s << " of pair " << pair << " after " << step + 1;
      }
    }
  }
}

TEST(TestedApplyGradients, EveryRuleAgreesWithTheReferenceOverThreeSteps) {
  for (const op::OptimizerInfo& info : op::kOptimizers) {
    for (const float weight_decay : {0.0f, 0.01f}) {
      const op::OptimizerRule rule = optimizer_rule(info.kind, weight_decay);
      // Alone, with a factor of the gradients, and with one that says that nothing is to be done.
      for (const HostTensor& rates : {HostTensor(0.1f), rates_of(0.1f, 0.3f), rates_of(0.1f, 0.0f)}) {
        // Variables of all sizes in one update: a scalar, some channels, more than one piece.
        std::vector<HostTensor> values{rates};
        for (const Shape& shape : {Shape{}, Shape{19}, Shape{33, 7, 3, 3}, Shape{200, 170}}) {
          values.push_back(random_tensor(shape, values.size()));
          values.push_back(random_tensor(shape, values.size() + 100));
        }
        expect_same_updates(OperationCase(op::ApplyGradients{rule}, std::move(values)), {.name = "plain"}, 3,
                            {.terms = 8, .magnitude = 4});
      }
    }
  }
}

// Arrays of several variables one after the other, as the store keeps them: each begins at a multiple of 64 bytes.
class Arena {
 public:
  Arena(ComputeDevice& device, const std::vector<Shape>& shapes, DataType type) : device_(device), type_(type) {
    constexpr std::int64_t kMultiple = 16;
    for (const Shape& shape : shapes) {
      begins_.push_back(elements_);
      elements_ += (shape.elements() + kMultiple - 1) / kMultiple * kMultiple;
    }
    memory_ = device.allocate(elements_ * size_of(type), "a test");
  }
  void* at(std::size_t i) const { return memory_.at(begins_[i] * size_of(type_)); }
  void write(std::size_t i, const HostTensor& value) {
    device_.upload(at(i), value.data(), value.type().bytes());
    device_.synchronize();
  }
  // All of it, with what lies between the variables.
  template <typename Element>
  std::vector<Element> read() const {
    std::vector<Element> elements(elements_);
    device_.download(elements.data(), memory_.at(0), memory_.bytes());
    device_.synchronize();
    return elements;
  }
  std::size_t begin(std::size_t i) const { return static_cast<std::size_t>(begins_[i]); }

 private:
  ComputeDevice& device_;
  DataType type_;
  std::vector<std::int64_t> begins_;
  std::int64_t elements_ = 0;
  DeviceMemory memory_;
};

template <typename Half>
void expect_updated_neighbours(const Backend* backend, Precision precision) {
  ComputeDevice& device = backend->device();
  // The order of an update need not be that of memory, and the fourth variable is not part of it.
  const std::vector<Shape> shapes{{19}, {64}, {50, 70}, {5}, {3}};
  const std::vector<std::size_t> updated{2, 0, 1, 4};
  const bool shadowed = backend->shadow_type(precision) == stored_type(precision);
  Arena values(device, shapes, DataType::f32), gradients(device, shapes, DataType::f32);
  Arena state(device, shapes, DataType::f32), shadows(device, shapes, stored_type(precision));
  Arena rate(device, {Shape{}}, DataType::f32);
  rate.write(0, HostTensor(0.1f));
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    values.write(i, random_tensor(shapes[i], i));
    gradients.write(i, random_tensor(shapes[i], i + 100));
  }
  const auto old_values = values.read<float>();

  KernelMemory memory;
  memory.inputs = {rate.at(0)};
  std::vector<HostTensor> inputs{HostTensor(0.1f)};
  for (const std::size_t i : updated) {
    inputs.insert(inputs.end(), {random_tensor(shapes[i], i), random_tensor(shapes[i], i + 100)});
    memory.inputs.insert(memory.inputs.end(), {values.at(i), gradients.at(i)});
    memory.gradients.push_back({static_cast<const float*>(gradients.at(i))});
    memory.optimizer_state.push_back({static_cast<float*>(state.at(i))});
    memory.shadows.push_back(shadowed ? shadows.at(i) : nullptr);
  }
  const OperationCase operation(op::ApplyGradients{{.kind = OptimizerKind::momentum, .weight_decay = 0.01f}}, inputs);
  KernelRequest request{.node = operation.node(),
                        .inputs = {},
                        .input_open = std::vector<bool>(inputs.size(), false),
                        .output_wish = {},
                        .precision = shadowed ? precision : Precision::fp32};
  for (const HostTensor& input : inputs)
    request.inputs.push_back({DataType::f32, input.shape(), Layout::plain(input.shape().rank())});
  const KernelChoice choice = backend->choose(request);
  choice.kernel->bind(memory);
  device.set_context({});
  choice.kernel->run({});
  device.synchronize();

  KernelRun reference(*make_backend("reference"), operation, {.name = "reference"});
  reference.run();
  const auto new_values = values.read<float>();
  const auto new_shadows = shadows.read<Half>();
  std::vector<bool> seen(new_values.size(), false);
  for (std::size_t pair = 0; pair < updated.size(); ++pair) {
    const std::size_t begin = values.begin(updated[pair]);
    const HostTensor expected = reference.input(1 + 2 * pair);
    for (std::size_t k = 0; k < expected.f32().size(); ++k) {
      EXPECT_NEAR(new_values[begin + k], expected.f32()[k], 1e-6) << "variable " << updated[pair] << " element " << k;
      if (shadowed) {
        EXPECT_EQ(new_shadows[begin + k].bits, Half(new_values[begin + k]).bits);
      }
      seen[begin + k] = true;
    }
  }
  for (std::size_t k = 0; k < seen.size(); ++k) {
    if (!seen[k]) {
      EXPECT_EQ(new_values[k], old_values[k]) << "padding, or a variable that is not updated, at " << k;
    }
  }
}

TEST(TestedApplyGradients, NeighboursInArenasAndTheirShadows) {
  const auto backend = tested_backend();
  if (!backend) GTEST_SKIP() << "nothing to test: see tested_backend()";
  expect_updated_neighbours<BFloat16>(backend.get(), Precision::bf16);
  expect_updated_neighbours<Float16>(backend.get(), Precision::fp16);
}

// Gradients of all sizes, and one number that is not finite in all kinds of places.
TEST(TestedUnscaledRates, AgreesWithTheReference) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::vector<Shape> shapes{{}, {19}, {33, 7, 3, 3}, {200, 170}};
  const auto expect_rates = [&](std::size_t of, std::size_t at, float value) {
    std::vector<HostTensor> values{HostTensor(0.1f), HostTensor(1024.0f)};
    for (const Shape& shape : shapes) values.push_back(random_tensor(shape, values.size()));
    values[of + 2].f32()[at] = value;
    expect_same(OperationCase(op::UnscaledRates{}, std::move(values)), layout_variants(), {.terms = 0});
  };
  expect_rates(0, 0, 0);
  expect_rates(3, 5, std::numeric_limits<float>::max());
  for (const float value : {kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN()}) {
    for (std::size_t of = 0; of < shapes.size(); ++of) {
      const auto elements = static_cast<std::size_t>(shapes[of].elements());
      expect_rates(of, 0, value);
      expect_rates(of, elements / 2, value);
      expect_rates(of, elements - 1, value);
    }
  }
}

TEST(TestedUpdateLossScale, AgreesWithTheReference) {
  for (const float factor : {0x1p-16f, 0.0f}) {
    expect_same_updates(
        OperationCase(op::UpdateLossScale{.growth_interval = 2},
                      {HostTensor(65536.0f), HostTensor(0.0f), HostTensor(3.0f), rates_of(0.1f, factor)}),
        {.name = "plain"}, 5, {.terms = 0});
  }
}

TEST(TestedMovingAverage, AgreesWithTheReference) {
  for (const Shape& shape : {Shape{19}, {20000}, {}}) {
    expect_same_updates(OperationCase(op::MovingAverage{.decay = 0.9f, .scales = {1.1f}},
                                      {random_tensor(shape, 1), random_tensor(shape, 2)}),
                        {.name = "plain"}, 3, {.terms = 4});
  }
}

TEST(TestedMovingAverage, OfVariablesOfAllSizesAgreesWithTheReference) {
  std::vector<HostTensor> values;
  std::vector<float> scales;
  for (const Shape& shape : {Shape{64}, {1024}, {20000}, {}, {1025}, {3}}) {
    scales.push_back(1.0f + 0.25f * static_cast<float>(scales.size()));
    values.push_back(random_tensor(shape, values.size()));
    values.push_back(random_tensor(shape, values.size() + 100));
  }
  expect_same_updates(OperationCase(op::MovingAverage{.decay = 0.9f, .scales = scales}, std::move(values)),
                      {.name = "plain"}, 3, {.terms = 4, .magnitude = 2.5});
}

TEST(TestedAssign, CopiesTheValue) {
  expect_same_updates(OperationCase(op::Assign{}, {random_tensor({33, 7}, 1), random_tensor({33, 7}, 2)}),
                      {.name = "plain"}, 1, {.terms = 0});
}

}  // namespace
}  // namespace trireme::testkit
