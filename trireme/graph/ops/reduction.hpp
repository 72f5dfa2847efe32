// Sums, means and maxima over axes, and the L2 loss.
#pragma once

#include <string_view>

#include "trireme/graph/ops/common.hpp"

namespace trireme::op {

enum class ReduceKind : std::uint8_t { sum, mean, max };
std::string_view to_string(ReduceKind kind);

// inputs: src; outputs: dst. Axes ascend; none means all. keep_dims leaves reduced axes with extent 1.
struct Reduce {
  ReduceKind kind = ReduceKind::sum;
  std::vector<int> axes;
  bool keep_dims = false;
  static constexpr const char* kName = "reduce";
  static constexpr double kFlops = 1;
};

// inputs: src; outputs: scalar scale · sum(src²)/2
struct L2Loss {
  float scale = 1.0f;
  static constexpr const char* kName = "l2_loss";
  static constexpr double kFlops = 2;
};

std::vector<TensorType> infer(const Reduce& op, Types inputs);
std::vector<TensorType> infer(const L2Loss& op, Types inputs);
std::vector<Tensor> gradient(const Reduce& op, const GradientArgs& args);
std::vector<Tensor> gradient(const L2Loss& op, const GradientArgs& args);

}  // namespace trireme::op
