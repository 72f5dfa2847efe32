#include <algorithm>
#include <cmath>
#include <numbers>

#include "trireme/backend/dropout_mask.hpp"
#include "trireme/backend/reference/kernels.hpp"
#include "trireme/backend/reference/loops.hpp"

namespace trireme::reference {
namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
// Density and cumulative distribution function of the normal distribution.
double normal_density(double x) { return std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi); }
double normal_integral(double x) { return std::erfc(-x / std::numbers::sqrt2) / 2; }

double evaluate(op::UnaryKind kind, double alpha, double beta, double x) {
  switch (kind) {
    case op::UnaryKind::relu:
      return x < 0 ? 0 : x;
    case op::UnaryKind::leaky_relu:
      return x < 0 ? alpha * x : x;
    case op::UnaryKind::elu:
      return x < 0 ? alpha * std::expm1(x) : x;
    case op::UnaryKind::sigmoid:
      return sigmoid(x);
    case op::UnaryKind::tanh:
      return std::tanh(x);
    case op::UnaryKind::softplus:
      return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));  // exp(x) would overflow
    case op::UnaryKind::swish:
      return x * sigmoid(x);
    case op::UnaryKind::gelu:
      return x * normal_integral(x);
    case op::UnaryKind::abs:
      return std::abs(x);
    case op::UnaryKind::square:
      return x * x;
    case op::UnaryKind::sqrt:
      return std::sqrt(x);
    case op::UnaryKind::exp:
      return std::exp(x);
    case op::UnaryKind::log:
      return std::log(x);
    case op::UnaryKind::negate:
      return -x;
    case op::UnaryKind::clip:
      return std::min(std::max(x, alpha), beta);
    case op::UnaryKind::affine:
      return alpha * x + beta;
  }
  return x;
}

double derivative_from_src(op::UnaryKind kind, double alpha, double beta, double x) {
  switch (kind) {
    case op::UnaryKind::relu:
      return x > 0 ? 1 : 0;
    case op::UnaryKind::leaky_relu:
      return x > 0 ? 1 : alpha;
    case op::UnaryKind::elu:
      return x > 0 ? 1 : alpha * std::exp(x);
    case op::UnaryKind::sigmoid:
      return sigmoid(x) * (1 - sigmoid(x));
    case op::UnaryKind::tanh:
      return 1 - std::tanh(x) * std::tanh(x);
    case op::UnaryKind::softplus:
      return sigmoid(x);
    case op::UnaryKind::swish:
      return sigmoid(x) * (1 + x * (1 - sigmoid(x)));
    case op::UnaryKind::gelu:
      return normal_integral(x) + x * normal_density(x);
    case op::UnaryKind::abs:
      return x > 0 ? 1 : (x < 0 ? -1 : 0);
    case op::UnaryKind::square:
      return 2 * x;
    case op::UnaryKind::sqrt:
      return 0.5 / std::sqrt(x);
    case op::UnaryKind::exp:
      return std::exp(x);
    case op::UnaryKind::log:
      return 1 / x;
    case op::UnaryKind::negate:
      return -1;
    case op::UnaryKind::clip:
      return alpha < x && x < beta ? 1 : 0;
    case op::UnaryKind::affine:
      return alpha;
  }
  return 1;
}

// For kinds with backward_uses_dst: the derivative at the src that gave y.
double derivative_from_dst(op::UnaryKind kind, double alpha, double beta, double y) {
  switch (kind) {
    case op::UnaryKind::elu:
      return y > 0 ? 1 : y + alpha;
    case op::UnaryKind::sigmoid:
      return y * (1 - y);
    case op::UnaryKind::tanh:
      return 1 - y * y;
    case op::UnaryKind::sqrt:
      return 0.5 / y;
    case op::UnaryKind::exp:
      return y;
    default:
      return derivative_from_src(kind, alpha, beta, y);  // dst is on the same side of each kink as src
  }
}

double evaluate(op::BinaryKind kind, double a, double b) {
  switch (kind) {
    case op::BinaryKind::add:
      return a + b;
    case op::BinaryKind::subtract:
      return a - b;
    case op::BinaryKind::multiply:
      return a * b;
    case op::BinaryKind::divide:
      return a / b;
    case op::BinaryKind::maximum:
      return std::max(a, b);
    case op::BinaryKind::minimum:
      return std::min(a, b);
    case op::BinaryKind::equal:
      return a == b ? 1 : 0;
    case op::BinaryKind::greater_equal:
      return a >= b ? 1 : 0;
  }
  return a;
}

}  // namespace

KernelChoice make(const op::Unary& operation, const KernelRequest& request) {
  return elementwise_loops(
      request, [=, elements = request.inputs[0].shape.elements()](const Operands& operands, const RunContext&) {
        const float* src = operands.input(0);
        float* dst = operands.output();
#pragma omp parallel for schedule(static)
        for (std::int64_t i = 0; i < elements; ++i)
          dst[i] = static_cast<float>(evaluate(operation.kind, operation.alpha, operation.beta, src[i]));
      });
}

KernelChoice make(const op::UnaryBackward& operation, const KernelRequest& request) {
  const auto derivative = op::backward_uses_dst(operation.kind) ? derivative_from_dst : derivative_from_src;
  return elementwise_loops(
      request, [=, elements = request.inputs[0].shape.elements()](const Operands& operands, const RunContext&) {
        const float* diff_dst = operands.input(0);
        const float* data = operands.input(1);
        float* diff_src = operands.output();
#pragma omp parallel for schedule(static)
        for (std::int64_t i = 0; i < elements; ++i) {
          diff_src[i] =
              static_cast<float>(diff_dst[i] * derivative(operation.kind, operation.alpha, operation.beta, data[i]));
        }
      });
}

KernelChoice make(const op::Binary& operation, const KernelRequest& request) {
  const Shape& shape = request.node.outputs[0].shape;
  const Strides a_strides = broadcast_strides(request.inputs[0].shape, shape);
  const Strides b_strides = broadcast_strides(request.inputs[1].shape, shape);
  return elementwise_loops(request, [=, elements = shape.elements()](const Operands& operands, const RunContext&) {
    const float* a = operands.input(0);
    const float* b = operands.input(1);
    float* dst = operands.output();
#pragma omp parallel for schedule(static)
    for (std::int64_t i = 0; i < elements; ++i) {
      const double value =
          evaluate(operation.kind, a[strided_offset(i, shape, a_strides)], b[strided_offset(i, shape, b_strides)]);
      dst[i] = static_cast<float>(activate(value, operation.activation));
    }
  });
}

KernelChoice make(const op::Dropout& operation, const KernelRequest& request) {
  const std::int64_t batch = request.inputs[0].shape[0];
  const std::int64_t per_sample = request.inputs[0].shape.elements() / batch;
  return elementwise_loops(request, [=](const Operands& operands, const RunContext& context) {
    const DropoutMask mask(operation, context, operands.first_sample(), per_sample);
    const float* src = operands.input(0);
    float* dst = operands.output();
#pragma omp parallel for schedule(static)
    for (std::int64_t sample = 0; sample < batch; ++sample) {
      for (std::int64_t position = 0; position < per_sample; ++position) {
        const std::int64_t at = sample * per_sample + position;
        dst[at] = mask.keeps(sample, position) ? src[at] * mask.scale() : 0;
      }
    }
  });
}

KernelChoice make(const op::Broadcast& operation, const KernelRequest& request) {
  const Shape& shape = request.node.outputs[0].shape;
  const Strides strides = broadcast_strides(request.inputs[0].shape, shape);
  return plain_loops(
      request, [=, scale = operation.scale, elements = shape.elements()](const Operands& operands, const RunContext&) {
        const float* src = operands.input(0);
        float* dst = operands.output();
#pragma omp parallel for schedule(static)
        for (std::int64_t i = 0; i < elements; ++i) {
          dst[i] = static_cast<float>(static_cast<double>(src[strided_offset(i, shape, strides)]) * scale);
        }
      });
}

}  // namespace trireme::reference
