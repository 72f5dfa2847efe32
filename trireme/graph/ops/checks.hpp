// Checks for shape inference in this folder. Error(bad_input) names input, shape and expectation; Graph::add the node.
#pragma once

#include <string_view>
#include <vector>

#include "trireme/base/error.hpp"
#include "trireme/graph/ops/common.hpp"

namespace trireme::op {

struct InputSpec {
  InputSpec(const char* input_name, DataType type = DataType::f32)  // NOLINT(google-explicit-constructor)
      : name(input_name), dtype(type) {}
  std::string_view name;
  DataType dtype;
};

void expect_inputs(Types inputs, const std::vector<InputSpec>& specs);
void expect_rank(const TensorType& type, std::string_view name, int rank, std::string_view meaning);
void expect_rank_at_least(const TensorType& type, std::string_view name, int rank, std::string_view meaning);
// why completes "expected 64 (...)", e.g. "one per output channel".
void expect_shape(const TensorType& type, std::string_view name, const Shape& expected, std::string_view why);
void expect_extents(const Shape& shape, std::string_view what);
void expect_axis(int axis, const Shape& shape);

void expect_finite(double value, std::string_view name);
void expect_not_negative(double value, std::string_view name);
void expect_positive(double value, std::string_view name);
// low <= value < high; NaN is outside.
void expect_in(double value, double low, double high, std::string_view name);

void refuse_fused(bool fused);  // gradients are taken before fusing

// Bytes of all inputs and outputs, each read or written once.
double traffic(Types inputs, Types outputs);
inline double elements(const TensorType& type) { return static_cast<double>(type.shape.elements()); }
inline TensorType f32(Shape shape) { return {DataType::f32, std::move(shape)}; }

}  // namespace trireme::op
