#include <algorithm>

#include "trireme/backend/onednn/channel_view.hpp"
#include "trireme/backend/onednn/kernels.hpp"
#include "trireme/backend/onednn/memory_layout.hpp"
#include "trireme/backend/onednn/own_kernel.hpp"
#include "trireme/backend/onednn/primitive_kernel.hpp"
#include "trireme/backend/onednn/vectors.hpp"
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

// A plane of an image for the backward loop of max pooling: positions of src and dst times lanes.
struct MaxPoolPlane {
  op::Window window;
  std::int64_t src_height, src_width, dst_height, dst_width;
  std::int64_t lanes;  // distance between positions
  std::int64_t width;  // lanes to process
  bool relu;           // includes the gradient of relu: 0 if src is not positive
  bool stream;         // non-temporal stores to diff_src: aligned floats, and no windows overlap

  bool overlaps() const { return window.kernel[0] > window.stride[0] || window.kernel[1] > window.stride[1]; }
};

// Pointers to the first lane. The first cell of a window that equals the maximum gets the gradient. Every cell of
// diff_src is written; it is read only if windows overlap.
template <typename Element>
struct MaxPoolOperands {
  const Element *diff_dst, *src, *dst;
  Element* diff_src;
};

struct Cells {
  std::int64_t h_begin, h_end, w_begin, w_end;
};

// Earlier windows have written the cells above this row and left of this column.
struct Written {
  std::int64_t rows, columns;
};

template <typename Isa, bool kStream, typename Element>
TRIREME_INLINE void write(Element* to, const Vector<Isa>& value) {
  if constexpr (kStream && Isa::kStreams) {
    stream<Isa>(to, value);
  } else {
    store<Isa>(to, value);
  }
}

// rest is zero in lanes whose gradient has found its cell.
template <typename Isa, bool kStream, typename Element>
TRIREME_INLINE void spread_window(const MaxPoolPlane& p, const Cells& cells, const Written& written, std::int64_t out,
                                  std::int64_t lane, const MaxPoolOperands<Element>& o) {
  const Vector<Isa> zero{};
  Vector<Isa> best, rest, value;
  load<Isa>(o.dst + out + lane, best);
  load<Isa>(o.diff_dst + out + lane, rest);
  // If the largest value is not positive, relu lets nothing through.
  if (p.relu) rest = best > zero ? rest : zero;
  for (std::int64_t h = cells.h_begin; h < cells.h_end; ++h) {
    for (std::int64_t w = cells.w_begin; w < cells.w_end; ++w) {
      const std::int64_t at = (h * p.src_width + w) * p.lanes + lane;
      load<Isa>(o.src + at, value);
      const auto hit = value == best;
      Vector<Isa> given = hit ? rest : zero;
      rest = hit ? zero : rest;
      if (!kStream && (h < written.rows || w < written.columns)) {
        load<Isa>(o.diff_src + at, value);
        given += value;
      }
      write<Isa, kStream>(o.diff_src + at, given);
    }
  }
}

template <typename Element>
TRIREME_INLINE void clear(const MaxPoolPlane& p, const Cells& cells, Element* diff_src) {
  for (std::int64_t h = cells.h_begin; h < cells.h_end; ++h) {
    for (std::int64_t w = cells.w_begin; w < cells.w_end; ++w) {
      Element* cell = diff_src + (h * p.src_width + w) * p.lanes;
      for (std::int64_t l = 0; l < p.width; ++l) cell[l] = Element{};
    }
  }
}

template <typename Isa, bool kStream, typename Element>
TRIREME_INLINE void spread(const MaxPoolPlane& p, const MaxPoolOperands<Element>& o) {
  std::int64_t rows = 0;
  for (std::int64_t oh = 0; oh < p.dst_height; ++oh) {
    const std::int64_t top = oh * p.window.stride[0] - p.window.pad_before[0];
    const std::int64_t h_begin = std::max<std::int64_t>(top, 0);
    const std::int64_t h_end = std::min(top + p.window.kernel[0], p.src_height);
    clear(p, {rows, h_begin, 0, p.src_width}, o.diff_src);
    rows = std::max(rows, h_begin);
    std::int64_t columns = 0;
    for (std::int64_t ow = 0; ow < p.dst_width; ++ow) {
      const std::int64_t left = ow * p.window.stride[1] - p.window.pad_before[1];
      const Cells cells{h_begin, h_end, std::max<std::int64_t>(left, 0),
                        std::min(left + p.window.kernel[1], p.src_width)};
      clear(p, {rows, h_end, columns, cells.w_begin}, o.diff_src);
      const Written written{rows, columns};
      const std::int64_t out = (oh * p.dst_width + ow) * p.lanes;
      std::int64_t lane = 0;
      for (; lane + Isa::kWidth <= p.width; lane += Isa::kWidth)
        spread_window<Isa, kStream>(p, cells, written, out, lane, o);
      for (; lane < p.width; ++lane) spread_window<Scalar, false>(p, cells, written, out, lane, o);
      columns = std::max(columns, cells.w_end);
    }
    clear(p, {rows, h_end, columns, p.src_width}, o.diff_src);
    rows = std::max(rows, h_end);
  }
  clear(p, {rows, p.src_height, 0, p.src_width}, o.diff_src);
}

// Only floats have non-temporal stores.
template <typename Isa>
TRIREME_INLINE void spread_any(const MaxPoolPlane& plane, const MaxPoolOperands<float>& operands) {
  plane.stream ? spread<Isa, true>(plane, operands) : spread<Isa, false>(plane, operands);
}
template <typename Isa>
TRIREME_INLINE void spread_any(const MaxPoolPlane& plane, const MaxPoolOperands<BFloat16>& operands) {
  spread<Isa, false>(plane, operands);
}

template <typename Element>
TRIREME_AVX512 void spread_avx512(const MaxPoolPlane& plane, const MaxPoolOperands<Element>& operands) {
  spread_any<Avx512>(plane, operands);
}
template <typename Element>
TRIREME_AVX2 void spread_avx2(const MaxPoolPlane& plane, const MaxPoolOperands<Element>& operands) {
  spread_any<Avx2>(plane, operands);
}
template <typename Element>
void spread_baseline(const MaxPoolPlane& plane, const MaxPoolOperands<Element>& operands) {
  spread<Baseline, false>(plane, operands);
}

template <typename Element>
void spread_to_maxima(const MaxPoolPlane& plane, const MaxPoolOperands<Element>& operands) {
  if (has_avx512() && plane.width >= Avx512::kWidth) {
    spread_avx512(plane, operands);
  } else if (has_avx2()) {
    spread_avx2(plane, operands);
  } else {
    spread_baseline(plane, operands);
  }
  if (plane.stream) finish_streams();
}

KernelChoice max_backward(const op::PoolBackward& operation, const KernelRequest& request) {
  const Shape& dst_shape = request.inputs[0].shape;
  // src and dst of the forward pass keep their format; the gradient is brought to it.
  const Layout layout = viewable(operation.src_shape, request.inputs[1].layout);
  ChannelView src_view = *channel_view(operation.src_shape, layout);
  // An image with one position has two possible views; dst may have more positions and then only one.
  if (layout.is_plain()) {
    src_view.blocks = src_view.channels;
    src_view.lanes = 1;
  }
  const MaxPoolPlane geometry{.window = operation.window,
                              .src_height = operation.src_shape[2],
                              .src_width = operation.src_shape[3],
                              .dst_height = dst_shape[2],
                              .dst_width = dst_shape[3],
                              .lanes = src_view.lanes,
                              .width = 0,
                              .relu = operation.activation == op::Activation::relu,
                              .stream = false};
  // Vectors are aligned if the lanes of a position are.
  const bool may_stream = !geometry.overlaps() && src_view.lanes % Avx512::kWidth == 0;
  const DataType type = request.inputs[1].dtype;
  KernelChoice choice = with_element(type, [&]<typename Element>(Element) {
    return own_kernel(request, [=](const Operands& operands, const RunContext&) {
      const auto* diff_dst = operands.input<Element>(0);
      const auto* src = operands.input<Element>(1);
      const auto* dst = operands.input<Element>(2);
      auto* diff_src = operands.output<Element>();
      const auto bytes = src_view.elements() * static_cast<std::int64_t>(sizeof(Element));
      MaxPoolPlane plane = geometry;
      plane.stream = std::is_same_v<Element, float> && may_stream && can_stream(diff_src, bytes);
      const std::int64_t groups = (src_view.lanes + kPanelWidth - 1) / kPanelWidth;
      const std::int64_t tasks = src_view.batch * src_view.blocks * groups;
#pragma omp parallel for schedule(static) firstprivate(plane) if (src_view.elements() > kParallelElements)
      for (std::int64_t task = 0; task < tasks; ++task) {
        const std::int64_t image = task / groups;
        const std::int64_t lane = task % groups * kPanelWidth;
        const std::int64_t in = image * src_view.positions * src_view.lanes + lane;
        const std::int64_t out = image * geometry.dst_height * geometry.dst_width * src_view.lanes + lane;
        plane.width = std::min(kPanelWidth, src_view.lanes - lane);
        spread_to_maxima(plane, MaxPoolOperands<Element>{diff_dst + out, src + in, dst + out, diff_src + in});
      }
    });
  });
  const Format format(layout, type);
  choice.inputs = {format, format, format};
  choice.outputs = {format};
  return choice;
}

}  // namespace

KernelChoice make(const op::Pool& operation, const KernelRequest& request, const dnnl::engine& engine) {
  const TensorDesc& src = request.inputs[0];
  const Layout layout = viewable(src.shape, src.layout);
  const memory::desc src_desc = to_desc(src.shape, layout, src.dtype);
  const memory::desc dst_desc = to_desc(request.node.outputs[0].shape, layout, src.dtype);
  const auto desc = pooling_forward(engine, problem_of(operation.kind, operation.window, src_desc, dst_desc));
  if (!desc) {
    fail(ErrorKind::failed, "oneDNN {} has no pooling for '{}': {} as {}, {}", library_version(), request.node.name,
         to_string(src.shape), layout.name(), op::to_string(operation.window));
  }
  KernelChoice choice;
  choice.inputs = choice.outputs = {Format(layout, src.dtype)};
  set_kernel(choice, engine, desc,
             {Argument::input(DNNL_ARG_SRC, src_desc, 0), Argument::output(DNNL_ARG_DST, dst_desc)});
  return choice;
}

KernelChoice make(const op::PoolBackward& operation, const KernelRequest& request, const dnnl::engine& engine) {
  if (operation.kind == op::PoolKind::max) return max_backward(operation, request);
  const TensorDesc& diff_dst = request.inputs[0];
  const Layout layout = viewable(diff_dst.shape, diff_dst.layout);
  const memory::desc diff_dst_desc = to_desc(diff_dst.shape, layout, diff_dst.dtype);
  const memory::desc diff_src_desc = to_desc(operation.src_shape, layout, diff_dst.dtype);
  const auto desc =
      pooling_backward(engine, problem_of(operation.kind, operation.window, diff_src_desc, diff_dst_desc));
  if (!desc) {
    fail(ErrorKind::failed, "oneDNN {} has no pooling backward for '{}': {} as {}, {}", library_version(),
         request.node.name, to_string(operation.src_shape), layout.name(), op::to_string(operation.window));
  }
  KernelChoice choice;
  choice.inputs = choice.outputs = {Format(layout, diff_dst.dtype)};
  set_kernel(
      choice, engine, desc,
      {Argument::input(DNNL_ARG_DIFF_DST, diff_dst_desc, 0), Argument::output(DNNL_ARG_DIFF_SRC, diff_src_desc)});
  return choice;
}

}  // namespace trireme::onednn
