#include "trireme/backend/reference/kernels.hpp"
#include "trireme/backend/reference/loops.hpp"

namespace trireme::reference {
namespace {

// A matrix read by row and column; transposed() swaps the two.
struct MatrixView {
  const float* data;
  std::int64_t row_stride, column_stride;

  static MatrixView row_major(const float* data, std::int64_t columns) { return {data, columns, 1}; }
  MatrixView transposed() const { return {data, column_stride, row_stride}; }
  double at(std::int64_t row, std::int64_t column) const { return data[row * row_stride + column * column_stride]; }
};

struct ProductExtents {
  std::int64_t rows, columns, inner;
};

// dst (rows x columns, row-major) = activation(a·b + bias); bias: one value per column, or null.
void multiply(const ProductExtents& extents, const MatrixView& a, const MatrixView& b, const float* bias,
              op::Activation activation, float* dst) {
#pragma omp parallel for schedule(static)
  for (std::int64_t row = 0; row < extents.rows; ++row) {
    for (std::int64_t column = 0; column < extents.columns; ++column) {
      double sum = bias == nullptr ? 0 : bias[column];
      for (std::int64_t k = 0; k < extents.inner; ++k) sum += a.at(row, k) * b.at(k, column);
      dst[row * extents.columns + column] = static_cast<float>(activate(sum, activation));
    }
  }
}

void multiply(const ProductExtents& extents, const MatrixView& a, const MatrixView& b, float* dst) {
  multiply(extents, a, b, nullptr, op::Activation::none, dst);
}

// diff_bias[channel] = sum of diff_dst over the other axes.
void sum_per_channel(const ChannelView& view, const float* diff_dst, float* diff_bias) {
#pragma omp parallel for schedule(static)
  for (std::int64_t channel = 0; channel < view.channels; ++channel) {
    double sum = 0;
    for (std::int64_t n = 0; n < view.batch; ++n) {
      for (std::int64_t i = 0; i < view.inner; ++i) sum += diff_dst[view.offset(n, channel, i)];
    }
    diff_bias[channel] = static_cast<float>(sum);
  }
}

}  // namespace

KernelChoice make(const op::FullyConnected& operation, const KernelRequest& request) {
  const std::int64_t batch = request.inputs[0].shape[0];
  const std::int64_t out = request.inputs[1].shape[0];
  const std::int64_t in = request.inputs[1].shape.elements() / out;
  return plain_loops(request, [=](const Operands& operands, const RunContext&) {
    const MatrixView src = MatrixView::row_major(operands.input(0), in);
    const MatrixView weights = MatrixView::row_major(operands.input(1), in);
    const float* bias = operation.bias ? operands.input(2) : nullptr;
    multiply({.rows = batch, .columns = out, .inner = in}, src, weights.transposed(), bias, operation.activation,
             operands.output());
  });
}

KernelChoice make(const op::FullyConnectedBackwardData&, const KernelRequest& request) {
  const std::int64_t batch = request.inputs[0].shape[0];
  const std::int64_t out = request.inputs[0].shape[1];
  const std::int64_t in = request.inputs[1].shape.elements() / out;
  return plain_loops(request, [=](const Operands& operands, const RunContext&) {
    const MatrixView diff_dst = MatrixView::row_major(operands.input(0), out);
    const MatrixView weights = MatrixView::row_major(operands.input(1), in);
    multiply({.rows = batch, .columns = in, .inner = out}, diff_dst, weights, operands.output());
  });
}

KernelChoice make(const op::FullyConnectedBackwardWeights& operation, const KernelRequest& request) {
  const ChannelView diff_dst_view(request.inputs[1].shape);
  const std::int64_t batch = diff_dst_view.batch;
  const std::int64_t out = diff_dst_view.channels;
  const std::int64_t in = request.inputs[0].shape.elements() / batch;
  return plain_loops(request, [=](const Operands& operands, const RunContext&) {
    const MatrixView src = MatrixView::row_major(operands.input(0), in);
    const MatrixView diff_dst = MatrixView::row_major(operands.input(1), out);
    multiply({.rows = out, .columns = in, .inner = batch}, diff_dst.transposed(), src, operands.output(0));
    if (operation.bias) sum_per_channel(diff_dst_view, operands.input(1), operands.output(1));
  });
}

KernelChoice make(const op::MatMul& operation, const KernelRequest& request) {
  const Shape& a_shape = request.inputs[0].shape;
  const Shape& b_shape = request.inputs[1].shape;
  const Shape& dst_shape = request.node.outputs[0].shape;
  const ProductExtents extents{
      .rows = dst_shape[0], .columns = dst_shape[1], .inner = a_shape[operation.transpose_a ? 0 : 1]};
  return plain_loops(request,
                     [=, a_columns = a_shape[1], b_columns = b_shape[1]](const Operands& operands, const RunContext&) {
                       const MatrixView a = MatrixView::row_major(operands.input(0), a_columns);
                       const MatrixView b = MatrixView::row_major(operands.input(1), b_columns);
                       multiply(extents, operation.transpose_a ? a.transposed() : a,
                                operation.transpose_b ? b.transposed() : b, operands.output());
                     });
}

KernelChoice make(const op::Bias& operation, const KernelRequest& request) {
  const ChannelView view(request.inputs[0].shape);
  return elementwise_loops(request, [=](const Operands& operands, const RunContext&) {
    const float* src = operands.input(0);
    const float* bias = operands.input(1);
    float* dst = operands.output();
#pragma omp parallel for collapse(2) schedule(static)
    for (std::int64_t n = 0; n < view.batch; ++n) {
      for (std::int64_t channel = 0; channel < view.channels; ++channel) {
        for (std::int64_t i = 0; i < view.inner; ++i) {
          const std::int64_t at = view.offset(n, channel, i);
          dst[at] = static_cast<float>(activate(static_cast<double>(src[at]) + bias[channel], operation.activation));
        }
      }
    }
  });
}

KernelChoice make(const op::BiasBackward&, const KernelRequest& request) {
  return plain_loops(request,
                     [view = ChannelView(request.inputs[0].shape)](const Operands& operands, const RunContext&) {
                       sum_per_channel(view, operands.input(0), operands.output());
                     });
}

}  // namespace trireme::reference
