#include <algorithm>

#include "trireme/backend/reference/kernels.hpp"
#include "trireme/backend/reference/loops.hpp"

namespace trireme::reference {
namespace {

// The image cells that one output sees: rows [top, bottom), columns [left, right).
struct Cells {
  std::int64_t top, bottom, left, right;
  std::int64_t count() const { return (bottom - top) * (right - left); }
};

// Pooling sees batch and channels as one list of images.
struct PoolGeometry {
  op::PoolKind kind;
  op::Window window;
  std::int64_t images;
  std::int64_t src_height, src_width, dst_height, dst_width;

  PoolGeometry(op::PoolKind kind_, const op::Window& window_, const Shape& src, const Shape& dst)
      : kind(kind_),
        window(window_),
        images(src[0] * src[1]),
        src_height(src[2]),
        src_width(src[3]),
        dst_height(dst[2]),
        dst_width(dst[3]) {}

  Cells cells(std::int64_t oh, std::int64_t ow) const {
    const std::int64_t top = oh * window.stride[0] - window.pad_before[0];
    const std::int64_t left = ow * window.stride[1] - window.pad_before[1];
    return {std::max<std::int64_t>(top, 0), std::min(top + window.kernel[0], src_height),
            std::max<std::int64_t>(left, 0), std::min(left + window.kernel[1], src_width)};
  }
  double divisor(const Cells& cells) const {
    const bool inside = kind == op::PoolKind::average_inside;
    return static_cast<double>(inside ? cells.count() : window.kernel[0] * window.kernel[1]);
  }
  std::int64_t src_elements() const { return src_height * src_width; }
  std::int64_t dst_elements() const { return dst_height * dst_width; }
};

// Position of the maximum in the image; the first in row order if several are equal.
std::int64_t position_of_maximum(const PoolGeometry& g, const float* image, const Cells& cells) {
  std::int64_t best = cells.top * g.src_width + cells.left;
  for (std::int64_t h = cells.top; h < cells.bottom; ++h) {
    for (std::int64_t w = cells.left; w < cells.right; ++w) {
      if (image[h * g.src_width + w] > image[best]) best = h * g.src_width + w;
    }
  }
  return best;
}

double average(const PoolGeometry& g, const float* image, const Cells& cells) {
  double sum = 0;
  for (std::int64_t h = cells.top; h < cells.bottom; ++h) {
    for (std::int64_t w = cells.left; w < cells.right; ++w) sum += image[h * g.src_width + w];
  }
  return sum / g.divisor(cells);
}

// Adds an output's gradient to the cells that it came from. Reads src only for max.
void spread(const PoolGeometry& g, const Cells& cells, double diff, const float* src, double* diff_src) {
  if (g.kind == op::PoolKind::max) {
    diff_src[position_of_maximum(g, src, cells)] += diff;
    return;
  }
  for (std::int64_t h = cells.top; h < cells.bottom; ++h) {
    for (std::int64_t w = cells.left; w < cells.right; ++w) diff_src[h * g.src_width + w] += diff / g.divisor(cells);
  }
}

}  // namespace

KernelChoice make(const op::Pool& operation, const KernelRequest& request) {
  const PoolGeometry g(operation.kind, operation.window, request.inputs[0].shape, request.node.outputs[0].shape);
  return plain_loops(request, [g](const Operands& operands, const RunContext&) {
    const float* src = operands.input(0);
    float* dst = operands.output();
#pragma omp parallel for schedule(static)
    for (std::int64_t image = 0; image < g.images; ++image) {
      const float* from = src + image * g.src_elements();
      float* to = dst + image * g.dst_elements();
      for (std::int64_t oh = 0; oh < g.dst_height; ++oh) {
        for (std::int64_t ow = 0; ow < g.dst_width; ++ow) {
          const Cells cells = g.cells(oh, ow);
          to[oh * g.dst_width + ow] = g.kind == op::PoolKind::max ? from[position_of_maximum(g, from, cells)]
                                                                  : static_cast<float>(average(g, from, cells));
        }
      }
    }
  });
}

KernelChoice make(const op::PoolBackward& operation, const KernelRequest& request) {
  const PoolGeometry g(operation.kind, operation.window, operation.src_shape, request.inputs[0].shape);
  const bool relu = operation.activation == op::Activation::relu;
  KernelChoice choice = plain_loops(request, [g, relu](const Operands& operands, const RunContext&) {
    const float* diff_dst = operands.input(0);
    const float* src = g.kind == op::PoolKind::max ? operands.input(1) : nullptr;
    auto* sums = operands.scratch<double>();
    float* diff_src = operands.output();
#pragma omp parallel for schedule(static)
    for (std::int64_t image = 0; image < g.images; ++image) {
      const float* diff = diff_dst + image * g.dst_elements();
      const float* from = src == nullptr ? nullptr : src + image * g.src_elements();
      double* sum = sums + image * g.src_elements();
      std::fill_n(sum, g.src_elements(), 0.0);
      for (std::int64_t oh = 0; oh < g.dst_height; ++oh) {
        for (std::int64_t ow = 0; ow < g.dst_width; ++ow)
          spread(g, g.cells(oh, ow), diff[oh * g.dst_width + ow], from, sum);
      }
      for (std::int64_t i = 0; i < g.src_elements(); ++i) {
        const bool through = !relu || from[i] > 0;
        diff_src[image * g.src_elements() + i] = through ? static_cast<float>(sum[i]) : 0;
      }
    }
  });
  choice.scratch_bytes = g.images * g.src_elements() * static_cast<std::int64_t>(sizeof(double));
  return choice;
}

}  // namespace trireme::reference
