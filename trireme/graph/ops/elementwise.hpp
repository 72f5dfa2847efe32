// Elementwise operations: activations, arithmetic with broadcasting, dropout.
#pragma once

#include <string_view>

#include "trireme/graph/ops/common.hpp"

namespace trireme::op {

enum class UnaryKind : std::uint8_t {
  relu,
  leaky_relu,
  elu,
  sigmoid,
  tanh,
  softplus,
  swish,
  gelu,
  abs,
  square,
  sqrt,
  exp,
  log,
  negate,
  clip,
  affine
};
std::string_view to_string(UnaryKind kind);
// Whether backward reads dst, which frees src and allows in-place computation, rather than src.
bool backward_uses_dst(UnaryKind kind);

// One flop per element for any kind: the cost of transcendental ones depends on the machine.
// inputs: src; outputs: dst. alpha: leaky_relu's slope, elu's scale; not negative, so that dst has the sign of src.
// gelu is exact (erf). clip: min(max(src, alpha), beta). affine: alpha * src + beta.
struct Unary {
  UnaryKind kind = UnaryKind::relu;
  float alpha = 0;
  float beta = 0;
  static constexpr const char* kName = "unary";
  static constexpr double kFlops = 1;
};

// inputs: diff_dst, data (dst or src, see backward_uses_dst); outputs: diff_src
struct UnaryBackward {
  UnaryKind kind = UnaryKind::relu;
  float alpha = 0;
  float beta = 0;
  static constexpr const char* kName = "unary_backward";
  static constexpr double kFlops = 2;
  static constexpr bool kBackward = true;
};

enum class BinaryKind : std::uint8_t { add, subtract, multiply, divide, maximum, minimum, equal, greater_equal };
std::string_view to_string(BinaryKind kind);

// inputs: a, b (broadcast as in numpy); outputs: dst. equal and greater_equal give 1 or 0 and have no gradient.
struct Binary {
  BinaryKind kind = BinaryKind::add;
  Activation activation = Activation::none;  // set by fusing
  static constexpr const char* kName = "binary";
};

// Keeps each element with probability 1 − rate and scales it by 1/(1 − rate). The mask is a function of (run seed, key,
// step, sample, position), so backward is the same operation on the gradient and no mask is stored.
// inputs: src: batch first; outputs: dst
struct Dropout {
  float rate = 0.5f;
  std::uint64_t key = 0;  // 0: Graph::add derives it from the node's name
  static constexpr const char* kName = "dropout";
  static constexpr double kFlops = 1;
};

// inputs: src; outputs: src repeated along axes of extent 1 (and new leading axes) to shape, times scale
struct Broadcast {
  Shape shape;
  float scale = 1.0f;
  static constexpr const char* kName = "broadcast";
};

std::vector<TensorType> infer(const Unary& op, Types inputs);
std::vector<TensorType> infer(const UnaryBackward& op, Types inputs);
std::vector<TensorType> infer(const Binary& op, Types inputs);
std::vector<TensorType> infer(const Dropout& op, Types inputs);
std::vector<TensorType> infer(const Broadcast& op, Types inputs);
Cost cost(const Binary& op, Types inputs, Types outputs);
Cost cost(const Broadcast& op, Types inputs, Types outputs);
std::vector<Tensor> gradient(const Unary& op, const GradientArgs& args);
std::vector<Tensor> gradient(const Binary& op, const GradientArgs& args);
std::vector<Tensor> gradient(const Dropout& op, const GradientArgs& args);
std::vector<Tensor> gradient(const Broadcast& op, const GradientArgs& args);

}  // namespace trireme::op
