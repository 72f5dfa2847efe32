#include "trireme/backend/reference/kernels.hpp"
#include "trireme/backend/reference/loops.hpp"

namespace trireme::reference {
namespace {

// Tensors: batch x channels x height x width; weights: out x in-per-group x kernel height x kernel width.
struct Geometry {
  op::Window window;
  std::int64_t batch;
  std::int64_t src_channels, src_height, src_width;
  std::int64_t dst_channels, dst_height, dst_width;
  std::int64_t src_per_group, dst_per_group;

  Geometry(const op::Window& window_, std::int64_t groups, const Shape& src, const Shape& dst)
      : window(window_),
        batch(src[0]),
        src_channels(src[1]),
        src_height(src[2]),
        src_width(src[3]),
        dst_channels(dst[1]),
        dst_height(dst[2]),
        dst_width(dst[3]),
        src_per_group(src[1] / groups),
        dst_per_group(dst[1] / groups) {}

  std::int64_t kernel_height() const { return window.kernel[0]; }
  std::int64_t kernel_width() const { return window.kernel[1]; }

  std::int64_t src_at(std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w) const {
    return ((n * src_channels + c) * src_height + h) * src_width + w;
  }
  std::int64_t dst_at(std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w) const {
    return ((n * dst_channels + c) * dst_height + h) * dst_width + w;
  }
  // c: the input channel within the group.
  std::int64_t weights_at(std::int64_t o, std::int64_t c, std::int64_t kh, std::int64_t kw) const {
    return ((o * src_per_group + c) * kernel_height() + kh) * kernel_width() + kw;
  }

  // The first input channel of an output channel's group, and the reverse.
  std::int64_t first_src_channel(std::int64_t dst_channel) const { return dst_channel / dst_per_group * src_per_group; }
  std::int64_t first_dst_channel(std::int64_t src_channel) const { return src_channel / src_per_group * dst_per_group; }

  // The src cell that output `out` sees through kernel cell k along axis 0 (height) or 1 (width); may be padding.
  std::int64_t src_position(std::size_t axis, std::int64_t out, std::int64_t k) const {
    return out * window.stride[axis] - window.pad_before[axis] + k * window.dilation[axis];
  }
  // The output that sees src cell `in` through kernel cell k, or -1.
  std::int64_t dst_position(std::size_t axis, std::int64_t in, std::int64_t k) const {
    const std::int64_t shifted = in + window.pad_before[axis] - k * window.dilation[axis];
    const std::int64_t extent = axis == 0 ? dst_height : dst_width;
    if (shifted < 0 || shifted % window.stride[axis] != 0) return -1;
    const std::int64_t out = shifted / window.stride[axis];
    return out < extent ? out : -1;
  }
  bool inside_height(std::int64_t h) const { return h >= 0 && h < src_height; }
  bool inside_width(std::int64_t w) const { return w >= 0 && w < src_width; }
};

double convolve_at(const Geometry& g, const float* src, const float* weights, std::int64_t n, std::int64_t o,
                   std::int64_t oh, std::int64_t ow) {
  double sum = 0;
  for (std::int64_t c = 0; c < g.src_per_group; ++c) {
    for (std::int64_t kh = 0; kh < g.kernel_height(); ++kh) {
      const std::int64_t ih = g.src_position(0, oh, kh);
      if (!g.inside_height(ih)) continue;
      for (std::int64_t kw = 0; kw < g.kernel_width(); ++kw) {
        const std::int64_t iw = g.src_position(1, ow, kw);
        if (!g.inside_width(iw)) continue;
        sum += static_cast<double>(src[g.src_at(n, g.first_src_channel(o) + c, ih, iw)]) *
               weights[g.weights_at(o, c, kh, kw)];
      }
    }
  }
  return sum;
}

double diff_src_at(const Geometry& g, const float* diff_dst, const float* weights, std::int64_t n, std::int64_t c,
                   std::int64_t ih, std::int64_t iw) {
  const std::int64_t first = g.first_dst_channel(c), channel_in_group = c % g.src_per_group;
  double sum = 0;
  for (std::int64_t o = first; o < first + g.dst_per_group; ++o) {
    for (std::int64_t kh = 0; kh < g.kernel_height(); ++kh) {
      const std::int64_t oh = g.dst_position(0, ih, kh);
      if (oh < 0) continue;
      for (std::int64_t kw = 0; kw < g.kernel_width(); ++kw) {
        const std::int64_t ow = g.dst_position(1, iw, kw);
        if (ow < 0) continue;
        sum +=
            static_cast<double>(diff_dst[g.dst_at(n, o, oh, ow)]) * weights[g.weights_at(o, channel_in_group, kh, kw)];
      }
    }
  }
  return sum;
}

double diff_weights_at(const Geometry& g, const float* src, const float* diff_dst, std::int64_t o, std::int64_t c,
                       std::int64_t kh, std::int64_t kw) {
  double sum = 0;
  for (std::int64_t n = 0; n < g.batch; ++n) {
    for (std::int64_t oh = 0; oh < g.dst_height; ++oh) {
      const std::int64_t ih = g.src_position(0, oh, kh);
      if (!g.inside_height(ih)) continue;
      for (std::int64_t ow = 0; ow < g.dst_width; ++ow) {
        const std::int64_t iw = g.src_position(1, ow, kw);
        if (!g.inside_width(iw)) continue;
        sum += static_cast<double>(src[g.src_at(n, g.first_src_channel(o) + c, ih, iw)]) *
               diff_dst[g.dst_at(n, o, oh, ow)];
      }
    }
  }
  return sum;
}

double diff_bias_at(const Geometry& g, const float* diff_dst, std::int64_t o) {
  double sum = 0;
  for (std::int64_t n = 0; n < g.batch; ++n) {
    for (std::int64_t oh = 0; oh < g.dst_height; ++oh) {
      for (std::int64_t ow = 0; ow < g.dst_width; ++ow) sum += diff_dst[g.dst_at(n, o, oh, ow)];
    }
  }
  return sum;
}

}  // namespace

KernelChoice make(const op::Convolution& operation, const KernelRequest& request) {
  const Geometry g(operation.window, operation.groups, request.inputs[0].shape, request.node.outputs[0].shape);
  return plain_loops(request, [g, operation](const Operands& operands, const RunContext&) {
    const float* src = operands.input(0);
    const float* weights = operands.input(1);
    const float* bias = operation.bias ? operands.input(2) : nullptr;
    const float* addend = operation.add ? operands.input(operation.bias ? 3 : 2) : nullptr;
    float* dst = operands.output();
#pragma omp parallel for collapse(2) schedule(static)
    for (std::int64_t n = 0; n < g.batch; ++n) {
      for (std::int64_t o = 0; o < g.dst_channels; ++o) {
        for (std::int64_t oh = 0; oh < g.dst_height; ++oh) {
          for (std::int64_t ow = 0; ow < g.dst_width; ++ow) {
            const std::int64_t at = g.dst_at(n, o, oh, ow);
            double value = convolve_at(g, src, weights, n, o, oh, ow);
            if (bias != nullptr) value += bias[o];
            if (addend != nullptr) value += addend[at];
            dst[at] = static_cast<float>(activate(value, operation.activation));
          }
        }
      }
    }
  });
}

KernelChoice make(const op::ConvolutionBackwardData& operation, const KernelRequest& request) {
  const Geometry g(operation.window, operation.groups, operation.src_shape, request.inputs[0].shape);
  return plain_loops(request, [g](const Operands& operands, const RunContext&) {
    const float* diff_dst = operands.input(0);
    const float* weights = operands.input(1);
    float* diff_src = operands.output();
#pragma omp parallel for collapse(2) schedule(static)
    for (std::int64_t n = 0; n < g.batch; ++n) {
      for (std::int64_t c = 0; c < g.src_channels; ++c) {
        for (std::int64_t ih = 0; ih < g.src_height; ++ih) {
          for (std::int64_t iw = 0; iw < g.src_width; ++iw) {
            diff_src[g.src_at(n, c, ih, iw)] = static_cast<float>(diff_src_at(g, diff_dst, weights, n, c, ih, iw));
          }
        }
      }
    }
  });
}

KernelChoice make(const op::ConvolutionBackwardWeights& operation, const KernelRequest& request) {
  const Geometry g(operation.window, operation.groups, request.inputs[0].shape, request.inputs[1].shape);
  return plain_loops(request, [g, with_bias = operation.bias](const Operands& operands, const RunContext&) {
    const float* src = operands.input(0);
    const float* diff_dst = operands.input(1);
    float* diff_weights = operands.output(0);
    float* diff_bias = with_bias ? operands.output(1) : nullptr;
#pragma omp parallel for schedule(static)
    for (std::int64_t o = 0; o < g.dst_channels; ++o) {
      for (std::int64_t c = 0; c < g.src_per_group; ++c) {
        for (std::int64_t kh = 0; kh < g.kernel_height(); ++kh) {
          for (std::int64_t kw = 0; kw < g.kernel_width(); ++kw) {
            diff_weights[g.weights_at(o, c, kh, kw)] =
                static_cast<float>(diff_weights_at(g, src, diff_dst, o, c, kh, kw));
          }
        }
      }
      if (diff_bias != nullptr) diff_bias[o] = static_cast<float>(diff_bias_at(g, diff_dst, o));
    }
  });
}

}  // namespace trireme::reference
