#include <algorithm>

#include "trireme/backend/onednn/channel_view.hpp"
#include "trireme/backend/onednn/kernels.hpp"
#include "trireme/backend/onednn/memory_layout.hpp"
#include "trireme/backend/onednn/own_kernel.hpp"
#include "trireme/backend/onednn/primitive_kernel.hpp"
#include "trireme/backend/onednn/simd.hpp"
#include "trireme/base/error.hpp"

namespace trireme::onednn {

using dnnl::memory;

namespace {

dnnl::algorithm algorithm_of(op::PoolKind kind) {
  switch (kind) {
    case op::PoolKind::max:
      return dnnl::algorithm::pooling_max;
    case op::PoolKind::average_inside:
      return dnnl::algorithm::pooling_avg_exclude_padding;
    case op::PoolKind::average_include_padding:
      break;
  }
  return dnnl::algorithm::pooling_avg_include_padding;
}

PoolingProblem problem_of(op::PoolKind kind, const op::Window& window, const memory::desc& src,
                          const memory::desc& dst) {
  return {.algorithm = algorithm_of(kind),
          .src = src,
          .dst = dst,
          .strides = {window.stride[0], window.stride[1]},
          .kernel = {window.kernel[0], window.kernel[1]},
          .pad_before = {window.pad_before[0], window.pad_before[1]},
          .pad_after = {window.pad_after[0], window.pad_after[1]}};
}

// Geometry of max pooling's backward over one plane: positions of src and dst times lanes.
struct MaxBackward {
  op::Window window;
  std::int64_t src_height, src_width, dst_height, dst_width;
  std::int64_t lanes;  // from one position to the next
  std::int64_t width;  // lanes that are worked on
};

// Cells of src under one window.
struct Cells {
  std::int64_t h_begin, h_end, w_begin, w_end;
};

constexpr std::int64_t kLanes = 16;  // of one window at once

// The first cell of the window whose value is the maximum gets the gradient: lanes that have given it away hold zero in
// rest. The pointers are at the first lane; width is at most kLanes, and where it is a constant of the caller rest and
// best are registers.
TRIREME_INLINE void spread_window(const MaxBackward& g, const Cells& cells, std::int64_t width, const float* diff_dst,
                                  const float* src, const float* dst, float* diff_src) {
  float rest[kLanes], best[kLanes];
  for (std::int64_t l = 0; l < width; ++l) rest[l] = diff_dst[l];
  for (std::int64_t l = 0; l < width; ++l) best[l] = dst[l];
  for (std::int64_t h = cells.h_begin; h < cells.h_end; ++h) {
    for (std::int64_t w = cells.w_begin; w < cells.w_end; ++w) {
      const std::int64_t at = (h * g.src_width + w) * g.lanes;
#pragma omp simd
      for (std::int64_t l = 0; l < width; ++l) {
        const bool hit = src[at + l] == best[l];
        diff_src[at + l] += hit ? rest[l] : 0.0f;
        rest[l] = hit ? 0.0f : rest[l];
      }
    }
  }
}

TRIREME_INLINE void clear_rows(const MaxBackward& g, std::int64_t begin, std::int64_t end, float* diff_src) {
  for (std::int64_t position = begin * g.src_width; position < end * g.src_width; ++position) {
    for (std::int64_t l = 0; l < g.width; ++l) diff_src[position * g.lanes + l] = 0;
  }
}

// Rows of diff_src are cleared just before the first window reaches them, while they are on their way into the cache.
TRIREME_SIMD void spread_to_maxima(const MaxBackward& g, const float* diff_dst, const float* src, const float* dst,
                                   float* diff_src) {
  std::int64_t cleared = 0;
  for (std::int64_t oh = 0; oh < g.dst_height; ++oh) {
    const std::int64_t top = oh * g.window.stride[0] - g.window.pad_before[0];
    Cells cells{.h_begin = std::max<std::int64_t>(top, 0),
                .h_end = std::min(top + g.window.kernel[0], g.src_height),
                .w_begin = 0,
                .w_end = 0};
    clear_rows(g, cleared, cells.h_end, diff_src);
    cleared = std::max(cleared, cells.h_end);
    for (std::int64_t ow = 0; ow < g.dst_width; ++ow) {
      const std::int64_t left = ow * g.window.stride[1] - g.window.pad_before[1];
      cells.w_begin = std::max<std::int64_t>(left, 0);
      cells.w_end = std::min(left + g.window.kernel[1], g.src_width);
      const std::int64_t out = (oh * g.dst_width + ow) * g.lanes;
      const auto spread = [&](std::int64_t l, std::int64_t width) __attribute__((always_inline)) {
        spread_window(g, cells, width, diff_dst + out + l, src + l, dst + out + l, diff_src + l);
      };
      std::int64_t l = 0;
      for (; l + kLanes <= g.width; l += kLanes) spread(l, kLanes);
      switch (g.width - l) {
        case 0:
          break;
        case 1:  // plain
          spread(l, 1);
          break;
        case 8:  // blocks without AVX-512
          spread(l, 8);
          break;
        default:
          spread(l, g.width - l);
      }
    }
  }
  clear_rows(g, cleared, g.src_height, diff_src);
}

KernelChoice max_backward(const op::PoolBackward& operation, const KernelRequest& request) {
  const Shape& dst_shape = request.inputs[0].shape;
  // src and dst of the forward pass are there already; the gradient comes to them.
  const Layout layout = viewable(operation.src_shape, request.inputs[1].layout);
  ChannelView src_view = *channel_view(operation.src_shape, layout);
  // An image of one position can be seen in two ways; dst may have more positions, and only one of the ways then.
  if (layout.is_plain()) {
    src_view.blocks = src_view.channels;
    src_view.lanes = 1;
  }
  const MaxBackward geometry{.window = operation.window,
                             .src_height = operation.src_shape[2],
                             .src_width = operation.src_shape[3],
                             .dst_height = dst_shape[2],
                             .dst_width = dst_shape[3],
                             .lanes = src_view.lanes,
                             .width = 0};
  KernelChoice choice = own_kernel(request, [=](const Operands& operands, const RunContext&) {
    const float* diff_dst = operands.input(0);
    const float* src = operands.input(1);
    const float* dst = operands.input(2);
    float* diff_src = operands.output();
    const std::int64_t groups = (src_view.lanes + kPanelWidth - 1) / kPanelWidth;
    const std::int64_t tasks = src_view.batch * src_view.blocks * groups;
#pragma omp parallel for schedule(static) if (src_view.elements() > kParallelElements)
    for (std::int64_t task = 0; task < tasks; ++task) {
      const std::int64_t plane = task / groups;
      const std::int64_t lane = task % groups * kPanelWidth;
      const std::int64_t in = plane * src_view.positions * src_view.lanes + lane;
      const std::int64_t out = plane * geometry.dst_height * geometry.dst_width * src_view.lanes + lane;
      MaxBackward part = geometry;
      part.width = std::min(kPanelWidth, src_view.lanes - lane);
      spread_to_maxima(part, diff_dst + out, src + in, dst + out, diff_src + in);
    }
  });
  choice.inputs = {layout, layout, layout};
  choice.outputs = {layout};
  return choice;
}

}  // namespace

KernelChoice make(const op::Pool& operation, const KernelRequest& request, const dnnl::engine& engine) {
  const TensorDesc& src = request.inputs[0];
  const Layout layout = viewable(src.shape, src.layout);
  const memory::desc src_desc = to_desc(src.shape, layout);
  const memory::desc dst_desc = to_desc(request.node.outputs[0].shape, layout);
  const auto desc = pooling_forward(engine, problem_of(operation.kind, operation.window, src_desc, dst_desc));
  if (!desc) {
    fail(ErrorKind::failed, "oneDNN {} has no pooling for '{}': {} as {}, {}", library_version(), request.node.name,
         to_string(src.shape), layout.name(), op::to_string(operation.window));
  }
  KernelChoice choice;
  choice.inputs = choice.outputs = {layout};
  set_kernel(choice, engine, desc,
             {Argument::input(DNNL_ARG_SRC, src_desc, 0), Argument::output(DNNL_ARG_DST, dst_desc)});
  return choice;
}

KernelChoice make(const op::PoolBackward& operation, const KernelRequest& request, const dnnl::engine& engine) {
  if (operation.kind == op::PoolKind::max) return max_backward(operation, request);
  const TensorDesc& diff_dst = request.inputs[0];
  const Layout layout = viewable(diff_dst.shape, diff_dst.layout);
  const memory::desc diff_dst_desc = to_desc(diff_dst.shape, layout);
  const memory::desc diff_src_desc = to_desc(operation.src_shape, layout);
  const auto desc =
      pooling_backward(engine, problem_of(operation.kind, operation.window, diff_src_desc, diff_dst_desc));
  if (!desc) {
    fail(ErrorKind::failed, "oneDNN {} has no pooling backward for '{}': {} as {}, {}", library_version(),
         request.node.name, to_string(operation.src_shape), layout.name(), op::to_string(operation.window));
  }
  KernelChoice choice;
  choice.inputs = choice.outputs = {layout};
  set_kernel(
      choice, engine, desc,
      {Argument::input(DNNL_ARG_DIFF_DST, diff_dst_desc, 0), Argument::output(DNNL_ARG_DIFF_SRC, diff_src_desc)});
  return choice;
}

}  // namespace trireme::onednn
