// Checks that the operations' shape inference shares, used by the files of this folder alone. Each throws
// Error(bad_input) that names the input, its shape and what was expected; Graph::add puts the node in front.
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

// The number of inputs and the element type of each.
void expect_inputs(Types inputs, const std::vector<InputSpec>& specs);
void expect_rank(const TensorType& type, std::string_view name, int rank, std::string_view meaning);
void expect_rank_at_least(const TensorType& type, std::string_view name, int rank, std::string_view meaning);
// why completes "expected 64 (...)", e.g. "one per output channel".
void expect_shape(const TensorType& type, std::string_view name, const Shape& expected, std::string_view why);
void expect_extents(const Shape& shape, std::string_view what);
// An axis of src; negative ones are not counted from the end.
void expect_axis(int axis, const Shape& shape);

void expect_finite(double value, std::string_view name);
void expect_not_negative(double value, std::string_view name);
void expect_positive(double value, std::string_view name);
// low <= value < high; NaN is outside.
void expect_in(double value, double low, double high, std::string_view name);

// Gradients are taken before fusing.
void refuse_fused(bool fused);

// Bytes of all inputs and outputs: what an operation reads and writes once.
double traffic(Types inputs, Types outputs);
inline double elements(const TensorType& type) { return static_cast<double>(type.shape.elements()); }
inline TensorType f32(Shape shape) { return {DataType::f32, std::move(shape)}; }

}  // namespace trireme::op
