// Sources of values: placeholders are fed, variables persist between runs, constants are part of the graph.
#pragma once

#include "trireme/base/host_tensor.hpp"
#include "trireme/graph/device.hpp"
#include "trireme/graph/ops/common.hpp"

namespace trireme::op {

// inputs: none; outputs: value
struct Placeholder {
  TensorType type;
  static constexpr const char* kName = "placeholder";
};

struct Initializer {
  enum class Kind : std::uint8_t { constant, truncated_normal, uniform };
  Kind kind = Kind::constant;
  float mean = 0;    // constant: the value; uniform: the low end
  float stddev = 0;  // uniform: the high end

  static Initializer constant(float value) { return {Kind::constant, value, 0}; }
  static Initializer truncated_normal(float stddev, float mean = 0) { return {Kind::truncated_normal, mean, stddev}; }
  static Initializer uniform(float low, float high) { return {Kind::uniform, low, high}; }
  // Variance scaling, with stddev corrected for the truncation at two sigma.
  static Initializer variance_scaling(float scale, std::int64_t fan_in);
};

// inputs: none; outputs: value. Written by the operations of update.hpp.
struct Variable {
  Shape shape;
  Initializer initializer;
  bool trainable = true;
  Device device{};  // where it lives, with parameter servers; unset parts are left to the placement
  static constexpr const char* kName = "variable";
};

// inputs: none; outputs: value
struct Constant {
  HostTensor value;
  static constexpr const char* kName = "constant";
};

std::vector<TensorType> infer(const Placeholder& op, Types inputs);
std::vector<TensorType> infer(const Variable& op, Types inputs);
std::vector<TensorType> infer(const Constant& op, Types inputs);

}  // namespace trireme::op
