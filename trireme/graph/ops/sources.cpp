#include "trireme/graph/ops/sources.hpp"

#include <cmath>

#include "trireme/graph/ops/checks.hpp"

namespace trireme::op {
namespace {

// Standard deviation of a unit normal truncated at two sigma.
constexpr double kTruncatedStddev = 0.87962566103423978;

void check(const Initializer& initializer) {
  expect_finite(initializer.mean, "the initial value's mean");
  expect_finite(initializer.stddev, "the initial value's spread");
  if (initializer.kind == Initializer::Kind::truncated_normal && initializer.stddev < 0) {
    bad_input("the initial value's standard deviation is {}, expected 0 or more", initializer.stddev);
  }
  if (initializer.kind == Initializer::Kind::uniform && initializer.stddev < initializer.mean) {
    bad_input("the initial values' range is {} to {}, expected the low end first", initializer.mean,
              initializer.stddev);
  }
}

}  // namespace

Initializer Initializer::variance_scaling(float scale, std::int64_t fan_in) {
  expect_positive(scale, "the scale of the initial values");
  if (fan_in < 1) bad_input("the fan-in of the initial values is {}, expected 1 or more", fan_in);
  return truncated_normal(static_cast<float>(std::sqrt(scale / static_cast<double>(fan_in)) / kTruncatedStddev));
}

std::vector<TensorType> infer(const Placeholder& op, Types inputs) {
  expect_inputs(inputs, {});
  expect_extents(op.type.shape, "the placeholder's shape");
  if (is_half(op.type.dtype)) {
    bad_input("a placeholder must have elements of type f32 or i32, not {}; a plan chooses {} itself, see Precision",
              to_string(op.type.dtype), to_string(op.type.dtype));
  }
  return {op.type};
}

std::vector<TensorType> infer(const Variable& op, Types inputs) {
  expect_inputs(inputs, {});
  expect_extents(op.shape, "the variable's shape");
  check(op.initializer);
  return {f32(op.shape)};
}

std::vector<TensorType> infer(const Constant& op, Types inputs) {
  expect_inputs(inputs, {});
  expect_extents(op.value.shape(), "the constant's shape");
  if (op.value.elements() != op.value.shape().elements()) {  // an empty HostTensor, such as an update's result
    bad_input("the constant's shape {} has {} elements, but {} values were given", to_string(op.value.shape()),
              op.value.shape().elements(), op.value.elements());
  }
  return {op.value.type()};
}

}  // namespace trireme::op
