#include <algorithm>
#include <cmath>

#include "trireme/backend/dropout_mask.hpp"
#include "trireme/backend/onednn/channel_view.hpp"
#include "trireme/backend/onednn/kernels.hpp"
#include "trireme/backend/onednn/memory_layout.hpp"
#include "trireme/backend/onednn/own_kernel.hpp"
#include "trireme/backend/onednn/primitive_kernel.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/simd.hpp"

namespace trireme::onednn {
namespace {

struct Eltwise {
  dnnl::algorithm from_src, from_dst;  // from_dst: if backward reads dst
  float alpha, beta;
};

Eltwise eltwise_of(op::UnaryKind kind, float alpha, float beta) {
  using enum op::UnaryKind;
  using enum dnnl::algorithm;
  switch (kind) {
    case relu:
      return {eltwise_relu, eltwise_relu_use_dst_for_bwd, 0, 0};
    case leaky_relu:
      return {eltwise_relu, eltwise_relu_use_dst_for_bwd, alpha, 0};
    case elu:
      return {eltwise_elu, eltwise_elu_use_dst_for_bwd, alpha, 0};
    case sigmoid:
      return {eltwise_logistic, eltwise_logistic_use_dst_for_bwd, 0, 0};
    case tanh:
      return {eltwise_tanh, eltwise_tanh_use_dst_for_bwd, 0, 0};
    case softplus:
      return {eltwise_soft_relu, undef, 1, 0};
    case swish:
      return {eltwise_swish, undef, 1, 0};
    case gelu:
      return {eltwise_gelu_erf, undef, 0, 0};
    case abs:
      return {eltwise_abs, undef, 0, 0};
    case square:
      return {eltwise_square, undef, 0, 0};
    case sqrt:
      return {eltwise_sqrt, eltwise_sqrt_use_dst_for_bwd, 0, 0};
    case exp:
      return {eltwise_exp, eltwise_exp_use_dst_for_bwd, 0, 0};
    case log:
      return {eltwise_log, undef, 0, 0};
    case negate:
      return {eltwise_linear, undef, -1, 0};
    case clip:
      return {eltwise_clip_v2, eltwise_clip_v2_use_dst_for_bwd, alpha, beta};
    case affine:
      return {eltwise_linear, undef, alpha, beta};
  }
  return {undef, undef, 0, 0};
}

[[noreturn]] void no_eltwise(const KernelRequest& request, std::string_view kind) {
  fail(ErrorKind::failed, "oneDNN {} has no {} for '{}': {} as {}", library_version(), kind, request.node.name,
       to_string(request.inputs[0].shape), request.inputs[0].format().name());
}

template <bool kRelu, bool kScalarA, bool kScalarB, typename A, typename B, typename Element, typename Function>
TRIREME_INLINE void binary_loop(const A* a, const B* b, Element* dst, std::int64_t count, Function function) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    const float value = function(a[kScalarA ? 0 : i], b[kScalarB ? 0 : i]);
    dst[i] = kRelu && value < 0 ? 0 : value;
  }
}

template <bool kScalarA, bool kScalarB, typename A, typename B, typename Element>
TRIREME_INLINE void binary_run_of(const op::Binary& operation, const A* a, const B* b, Element* dst,
                                  std::int64_t count) {
  const auto loop = [=](auto function) __attribute__((always_inline)) {
    operation.activation == op::Activation::relu ? binary_loop<true, kScalarA, kScalarB>(a, b, dst, count, function)
                                                 : binary_loop<false, kScalarA, kScalarB>(a, b, dst, count, function);
  };
  switch (operation.kind) {
    case op::BinaryKind::add:
      return loop([](float x, float y) { return x + y; });
    case op::BinaryKind::subtract:
      return loop([](float x, float y) { return x - y; });
    case op::BinaryKind::multiply:
      return loop([](float x, float y) { return x * y; });
    case op::BinaryKind::divide:
      return loop([](float x, float y) { return x / y; });
    case op::BinaryKind::maximum:
      return loop([](float x, float y) { return x < y ? y : x; });
    case op::BinaryKind::minimum:
      return loop([](float x, float y) { return y < x ? y : x; });
    case op::BinaryKind::equal:
      return loop([](float x, float y) { return x == y ? 1.0f : 0.0f; });
    case op::BinaryKind::greater_equal:
      return loop([](float x, float y) { return x >= y ? 1.0f : 0.0f; });
  }
}

// A run of elements, or one float for all of them.
template <typename Element>
struct Run {
  const Element* values;
  const float* scalar;

  // From element i of a tensor on, or its one value, which is never stored as bf16.
  static Run at(const Operands& operands, std::size_t input, bool is_scalar, std::int64_t i) {
    return is_scalar ? Run{nullptr, operands.input(input)} : Run{operands.input<Element>(input) + i, nullptr};
  }
};

template <typename Element>
TRIREME_INLINE void binary_run_any(const op::Binary& operation, const Run<Element>& a, const Run<Element>& b,
                                   Element* dst, std::int64_t count) {
  if (a.scalar != nullptr) {
    b.scalar != nullptr ? binary_run_of<true, true>(operation, a.scalar, b.scalar, dst, count)
                        : binary_run_of<true, false>(operation, a.scalar, b.values, dst, count);
  } else {
    b.scalar != nullptr ? binary_run_of<false, true>(operation, a.values, b.scalar, dst, count)
                        : binary_run_of<false, false>(operation, a.values, b.values, dst, count);
  }
}

TRIREME_SIMD void binary_run(const op::Binary& operation, const Run<float>& a, const Run<float>& b, float* dst,
                             std::int64_t count) {
  binary_run_any(operation, a, b, dst, count);
}
TRIREME_SIMD void binary_run(const op::Binary& operation, const Run<BFloat16>& a, const Run<BFloat16>& b, BFloat16* dst,
                             std::int64_t count) {
  binary_run_any(operation, a, b, dst, count);
}

constexpr std::int64_t kRun = 4096;  // elements of one task

KernelChoice binary_same_layout(const op::Binary& operation, const KernelRequest& request, const Layout& layout) {
  const Shape& shape = request.node.outputs[0].shape;
  const bool scalar_a = request.inputs[0].shape != shape, scalar_b = request.inputs[1].shape != shape;
  const std::int64_t elements = layout.elements(shape);
  const DataType type = common_type(request.inputs);
  KernelChoice choice = with_element(type, [&]<typename Element>(Element) {
    return own_kernel(request, [=](const Operands& operands, const RunContext&) {
      auto* dst = operands.output<Element>();
#pragma omp parallel for schedule(static) if (elements > kParallelElements)
      for (std::int64_t begin = 0; begin < elements; begin += kRun) {
        binary_run(operation, Run<Element>::at(operands, 0, scalar_a, begin),
                   Run<Element>::at(operands, 1, scalar_b, begin), dst + begin, std::min(kRun, elements - begin));
      }
    });
  });
  if (!scalar_a) choice.inputs[0] = {layout, type};
  if (!scalar_b) choice.inputs[1] = {layout, type};
  choice.outputs[0] = {layout, type};
  if (!scalar_a) choice.in_place.emplace_back(0, 0);
  if (!scalar_b) choice.in_place.emplace_back(1, 0);
  return choice;
}

// Whether zeros in the padding stay zeros. Two tensors both have zeros there; a single one meets the scalar.
bool keeps_zeros(op::BinaryKind kind, bool two_tensors) {
  switch (kind) {
    case op::BinaryKind::multiply:
      return true;
    case op::BinaryKind::add:
    case op::BinaryKind::subtract:
    case op::BinaryKind::maximum:
    case op::BinaryKind::minimum:
      return two_tensors;
    case op::BinaryKind::divide:  // 0/0
    case op::BinaryKind::equal:
    case op::BinaryKind::greater_equal:
      break;
  }
  return false;
}

// For plain layouts: strides of a tensor that is repeated along some axes, 0 along these.
std::vector<std::int64_t> repeated_strides(const Shape& from, const Shape& to) {
  std::vector<std::int64_t> strides(to.rank(), 0);
  std::int64_t stride = 1;
  for (int axis = from.rank() - 1; axis >= 0; --axis) {
    if (from[axis] != 1) strides[axis + to.rank() - from.rank()] = stride;
    stride *= from[axis];
  }
  return strides;
}

std::int64_t row_offset(std::int64_t row, const Shape& shape, const std::vector<std::int64_t>& strides) {
  std::int64_t offset = 0;
  for (int axis = shape.rank() - 2; axis >= 0; --axis) {
    offset += row % shape[axis] * strides[axis];
    row /= shape[axis];
  }
  return offset;
}

KernelChoice binary_repeated(const op::Binary& operation, const KernelRequest& request) {
  const Shape& shape = request.node.outputs[0].shape;
  const auto a_strides = repeated_strides(request.inputs[0].shape, shape);
  const auto b_strides = repeated_strides(request.inputs[1].shape, shape);
  const std::int64_t width = shape[shape.rank() - 1];
  const std::int64_t rows = shape.elements() / width;
  return own_kernel(request, [=](const Operands& operands, const RunContext&) {
    const float* a = operands.input(0);
    const float* b = operands.input(1);
    float* dst = operands.output();
#pragma omp parallel for schedule(static) if (rows * width > kParallelElements)
    for (std::int64_t row = 0; row < rows; ++row) {
      const auto run = [&](const float* values, const std::vector<std::int64_t>& strides) {
        const float* first = values + row_offset(row, shape, strides);
        return strides.back() == 0 ? Run<float>{nullptr, first} : Run<float>{first, nullptr};
      };
      binary_run(operation, run(a, a_strides), run(b, b_strides), dst + row * width, width);
    }
  });
}

template <typename Element>
TRIREME_INLINE void scaled_copy_of(const float* src, float scale, Element* dst, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) dst[i] = src[i] * scale;
}

TRIREME_SIMD void scaled_copy(const float* src, float scale, float* dst, std::int64_t count) {
  scaled_copy_of(src, scale, dst, count);
}
TRIREME_SIMD void scaled_copy(const float* src, float scale, BFloat16* dst, std::int64_t count) {
  scaled_copy_of(src, scale, dst, count);
}

// Spreads batch x channels values over all positions, as convolutions prefer: the gradient of a mean over the image.
template <typename Element>
KernelChoice broadcast_over_image(const op::Broadcast& operation, const KernelRequest& request,
                                  const ChannelView& view) {
  return own_kernel(request, [view, scale = operation.scale](const Operands& operands, const RunContext&) {
    const float* src = operands.input(0);
    auto* dst = operands.output<Element>();
#pragma omp parallel for schedule(static) if (view.elements() > kParallelElements)
    for (std::int64_t plane = 0; plane < view.batch * view.blocks; ++plane) {
      const std::int64_t n = plane / view.blocks;
      const std::int64_t first = plane % view.blocks * view.lanes;
      const float* values = src + n * view.channels + first;
      Element* to = dst + plane * view.positions * view.lanes;
      if (view.lanes == 1) {
        std::fill_n(to, view.positions, static_cast<Element>(values[0] * scale));
        continue;
      }
      const std::int64_t real = std::min(view.lanes, view.channels - first);
      for (std::int64_t position = 0; position < view.positions; ++position, to += view.lanes) {
        scaled_copy(values, scale, to, real);
        std::fill(to + real, to + view.lanes, Element{});
      }
    }
  });
}

// The library's logarithm is off by 3e-6 near 1, where the result itself is small.
KernelChoice exact_log(const KernelRequest& request) {
  const TensorDesc& src = request.inputs[0];
  const std::int64_t elements = src.shape.elements();
  KernelChoice choice = own_kernel(request, [elements](const Operands& operands, const RunContext&) {
    const float* from = operands.input(0);
    float* to = operands.output();
#pragma omp parallel for schedule(static) if (elements > kParallelElements / 4)
    for (std::int64_t i = 0; i < elements; ++i) to[i] = std::log(from[i]);
  });
  // Padding would become log(0).
  if (src.layout.elements(src.shape) == elements) choice.inputs[0] = choice.outputs[0] = src.layout;
  choice.in_place = {{0, 0}};
  return choice;
}

template <typename Element>
KernelChoice dropout(const op::Dropout& operation, const KernelRequest& request) {
  const Shape& shape = request.inputs[0].shape;
  const Layout layout = viewable(shape, request.inputs[0].layout);
  const std::int64_t batch = shape[0];
  const std::int64_t per_sample = shape.elements() / batch;
  const auto view = channel_view(shape, layout);
  const bool row_major = layout.is_plain();
  KernelChoice choice = own_kernel(request, [=](const Operands& operands, const RunContext& context) {
    const DropoutMask mask(operation, context, operands.first_sample(), per_sample);
    const float scale = mask.scale();
    const auto* src = operands.input<Element>(0);
    auto* dst = operands.output<Element>();
    if (row_major) {
      const std::int64_t blocks = (per_sample + 3) / 4;
#pragma omp parallel for collapse(2) schedule(static) if (batch * per_sample > kParallelElements / 4)
      for (std::int64_t sample = 0; sample < batch; ++sample) {
        for (std::int64_t block = 0; block < blocks; ++block) {
          const RandomBlock bits = mask.bits(sample, block);
          const std::int64_t begin = sample * per_sample + 4 * block;
          const std::int64_t count = std::min<std::int64_t>(4, per_sample - 4 * block);
          for (std::int64_t i = 0; i < count; ++i) {
            const bool keeps = mask.keeps(bits[i]);
            dst[begin + i] = keeps ? src[begin + i] * scale : 0;
          }
        }
      }
      return;
    }
#pragma omp parallel for collapse(2) schedule(static) if (batch * per_sample > kParallelElements / 4)
    for (std::int64_t plane = 0; plane < view->batch * view->blocks; ++plane) {
      for (std::int64_t position = 0; position < view->positions; ++position) {
        const std::int64_t at = (plane * view->positions + position) * view->lanes;
        const std::int64_t first = plane % view->blocks * view->lanes;
        for (std::int64_t lane = 0; lane < view->lanes; ++lane) {
          const bool real = first + lane < view->channels;
          const bool keeps = real && mask.keeps(plane / view->blocks, (first + lane) * view->positions + position);
          dst[at + lane] = keeps ? src[at + lane] * scale : 0;
        }
      }
    }
  });
  choice.inputs[0] = choice.outputs[0] = {layout, request.inputs[0].dtype};
  choice.in_place = {{0, 0}};
  return choice;
}

// The best layout for a new activation.
Layout fresh_layout(const KernelRequest& request, int rank) {
  if (const auto wish = wished(request)) return *wish;
  if (request.data_format == DataFormat::nhwc) return Layout::channels_last(rank);
  Layout layout = Layout::plain(rank);
  if (request.data_format == DataFormat::automatic) layout.blocks = {{1, preferred_channel_block()}};
  return layout;
}

}  // namespace

KernelChoice make(const op::Unary& operation, const KernelRequest& request, const dnnl::engine& engine) {
  if (operation.kind == op::UnaryKind::log) return exact_log(request);
  const Eltwise eltwise = eltwise_of(operation.kind, operation.alpha, operation.beta);
  const dnnl::memory::desc data = to_desc(request.inputs[0]);
  const auto desc = eltwise_forward(engine, {eltwise.from_src, data, eltwise.alpha, eltwise.beta});
  if (!desc) no_eltwise(request, op::to_string(operation.kind));
  KernelChoice choice;
  choice.inputs = choice.outputs = {request.inputs[0].format()};
  choice.in_place = {{0, 0}};
  set_kernel(choice, engine, desc, {Argument::input(DNNL_ARG_SRC, data, 0), Argument::output(DNNL_ARG_DST, data)});
  return choice;
}

KernelChoice make(const op::UnaryBackward& operation, const KernelRequest& request, const dnnl::engine& engine) {
  Eltwise eltwise = eltwise_of(operation.kind, operation.alpha, operation.beta);
  if (operation.kind == op::UnaryKind::clip && request.inputs[1].dtype == DataType::bf16) {
    // Clipped elements equal the bounds as stored.
    eltwise.alpha = BFloat16(eltwise.alpha);
    eltwise.beta = BFloat16(eltwise.beta);
  }
  const bool uses_dst = op::backward_uses_dst(operation.kind);
  // The forward pass's tensor keeps its format; the gradient is brought to it.
  const Format format = request.inputs[1].format();
  const dnnl::memory::desc data = to_desc(request.inputs[1]);
  const auto desc =
      eltwise_backward(engine, {uses_dst ? eltwise.from_dst : eltwise.from_src, data, eltwise.alpha, eltwise.beta});
  if (!desc) no_eltwise(request, op::to_string(operation.kind));
  KernelChoice choice;
  choice.inputs = {format, format};
  choice.outputs = {format};
  choice.in_place = {{0, 0}};
  set_kernel(
      choice, engine, desc,
      {Argument::input(DNNL_ARG_DIFF_DST, data, 0), Argument::input(uses_dst ? DNNL_ARG_DST : DNNL_ARG_SRC, data, 1),
       Argument::output(DNNL_ARG_DIFF_SRC, data)});
  return choice;
}

KernelChoice make(const op::Binary& operation, const KernelRequest& request, const dnnl::engine&) {
  const Shape& shape = request.node.outputs[0].shape;
  const auto fits = [&](const TensorDesc& input) { return input.shape == shape || input.shape.elements() == 1; };
  if (!fits(request.inputs[0]) || !fits(request.inputs[1])) return binary_repeated(operation, request);
  const bool first = request.inputs[0].shape == shape, second = request.inputs[1].shape == shape;
  const Layout& layout = first && second ? common_layout(request.inputs) : request.inputs[first ? 0 : 1].layout;
  const bool padded = layout.elements(shape) != shape.elements();
  const bool usable = !padded || keeps_zeros(operation.kind, first && second);
  return binary_same_layout(operation, request, usable ? layout : Layout::plain(shape.rank()));
}

KernelChoice make(const op::Dropout& operation, const KernelRequest& request, const dnnl::engine&) {
  return with_element(request.inputs[0].dtype,
                      [&]<typename Element>(Element) { return dropout<Element>(operation, request); });
}

KernelChoice make(const op::Broadcast& operation, const KernelRequest& request, const dnnl::engine&) {
  const Shape& from = request.inputs[0].shape;
  const Shape& to = operation.shape;
  if (from.rank() == 4 && to.rank() == 4 && from[0] == to[0] && from[1] == to[1] && from[2] == 1 && from[3] == 1) {
    const Layout layout = fresh_layout(request, 4);
    if (const auto view = channel_view(to, layout)) {
      const DataType type = request.precision == Precision::bf16 ? DataType::bf16 : DataType::f32;
      KernelChoice choice = with_element(
          type, [&]<typename Element>(Element) { return broadcast_over_image<Element>(operation, request, *view); });
      choice.outputs[0] = {layout, type};
      return choice;
    }
  }
  const auto strides = repeated_strides(from, to);
  const std::int64_t width = to.rank() == 0 ? 1 : to[to.rank() - 1];
  const std::int64_t rows = to.elements() / width;
  return own_kernel(request, [=, scale = operation.scale](const Operands& operands, const RunContext&) {
    const float* src = operands.input(0);
    float* dst = operands.output();
#pragma omp parallel for schedule(static) if (rows * width > kParallelElements)
    for (std::int64_t row = 0; row < rows; ++row) {
      const float* values = src + row_offset(row, to, strides);
      const bool repeated = strides.empty() || strides.back() == 0;
      repeated ? static_cast<void>(std::fill_n(dst + row * width, width, *values * scale))
               : scaled_copy(values, scale, dst + row * width, width);
    }
  });
}

}  // namespace trireme::onednn
