// Elementwise operations but dropout.
#include <type_traits>
#include <utility>

#include "trireme/backend/cuda/formats.hpp"
#include "trireme/backend/cuda/kernels.hpp"
#include "trireme/backend/cuda/strided.cuh"
#include "trireme/backend/function_kernel.hpp"

namespace trireme::cuda {
namespace {

// dst is dense in the order of the walk, over packs of width 1 or full_pack(dst_type); a and b are read at its offsets.
struct BinaryMap {
  op::Binary operation;
  int width;
  Walk<2> walk;
  DataType a_type, b_type, dst_type;
};

struct BroadcastMap {
  float scale;
  int width;
  Walk<1> walk;
  DataType src_type, dst_type;
};

__device__ float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }
// Density of the normal distribution.
__device__ float normal_density(float x) { return 0.3989422804f * expf(-0.5f * x * x); }

// kind is a compile-time constant in all calls, so only one case remains.
__device__ __forceinline__ float evaluate(op::UnaryKind kind, float alpha, float beta, float x) {
  switch (kind) {
    case op::UnaryKind::relu:
      return x < 0 ? 0 : x;
    case op::UnaryKind::leaky_relu:
      return x < 0 ? alpha * x : x;
    case op::UnaryKind::elu:
      return x < 0 ? alpha * expm1f(x) : x;
    case op::UnaryKind::sigmoid:
      return sigmoid(x);
    case op::UnaryKind::tanh:
      return tanhf(x);
    case op::UnaryKind::softplus:
      return fmaxf(x, 0) + log1pf(expf(-fabsf(x)));  // exp(x) would overflow
    case op::UnaryKind::swish:
      return x * sigmoid(x);
    case op::UnaryKind::gelu:
      return x * normcdff(x);
    case op::UnaryKind::abs:
      return fabsf(x);
    case op::UnaryKind::square:
      return x * x;
    case op::UnaryKind::sqrt:
      return sqrtf(x);
    case op::UnaryKind::exp:
      return expf(x);
    case op::UnaryKind::log:
      return logf(x);
    case op::UnaryKind::negate:
      return -x;
    case op::UnaryKind::clip:
      return x < alpha ? alpha : (x > beta ? beta : x);
    case op::UnaryKind::affine:
      return alpha * x + beta;
  }
  return x;
}

// data: dst or src, see backward_uses_dst.
__device__ __forceinline__ float derivative(op::UnaryKind kind, float alpha, float beta, float data) {
  switch (kind) {
    case op::UnaryKind::relu:
      return data > 0 ? 1 : 0;
    case op::UnaryKind::leaky_relu:
      return data > 0 ? 1 : alpha;
    case op::UnaryKind::elu:
      return data > 0 ? 1 : data + alpha;
    case op::UnaryKind::sigmoid:
      return data * (1 - data);
    case op::UnaryKind::tanh:
      return 1 - data * data;
    case op::UnaryKind::softplus:
      return sigmoid(data);
    case op::UnaryKind::swish:
      return sigmoid(data) * (1 + data * (1 - sigmoid(data)));
    case op::UnaryKind::gelu:
      return normcdff(data) + data * normal_density(data);
    case op::UnaryKind::abs:
      return data > 0 ? 1 : (data < 0 ? -1 : 0);
    case op::UnaryKind::square:
      return 2 * data;
    case op::UnaryKind::sqrt:
      return 0.5f / data;
    case op::UnaryKind::exp:
      return data;
    case op::UnaryKind::log:
      return 1 / data;
    case op::UnaryKind::negate:
      return -1;
    case op::UnaryKind::clip:
      return alpha < data && data < beta ? 1 : 0;
    case op::UnaryKind::affine:
      return alpha;
  }
  return 1;
}

__device__ __forceinline__ float evaluate(op::BinaryKind kind, float a, float b) {
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
      return a < b ? b : a;
    case op::BinaryKind::minimum:
      return b < a ? b : a;
    case op::BinaryKind::equal:
      return a == b ? 1 : 0;
    case op::BinaryKind::greater_equal:
      return a >= b ? 1 : 0;
  }
  return a;
}

constexpr std::size_t kUnaryKinds = static_cast<std::size_t>(op::UnaryKind::affine) + 1;
constexpr std::size_t kBinaryKinds = static_cast<std::size_t>(op::BinaryKind::greater_equal) + 1;

// function(constant) with the kind as a compile-time constant.
template <typename Kind, typename Function, std::size_t... kKinds>
void with_kind(Kind kind, std::index_sequence<kKinds...>, Function function) {
  const auto call_if = [&](auto constant) {
    if (kind == constant()) function(constant);
  };
  (call_if(std::integral_constant<Kind, static_cast<Kind>(kKinds)>{}), ...);
}

// function(first element, their number as a constant) for this thread's pack; only the last pack may not be full.
template <typename Element, typename Function>
__device__ __forceinline__ void for_flat_pack(std::int64_t elements, Function function) {
  constexpr int kWidth = kPack<Element>;
  const std::int64_t first = (static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x) * kWidth;
  if (first + kWidth <= elements) {
    function(first, std::integral_constant<int, kWidth>{});
  } else {
    for (std::int64_t i = first; i < elements; ++i) function(i, std::integral_constant<int, 1>{});
  }
}

template <typename Element>
unsigned flat_blocks(std::int64_t elements) {
  return blocks_of_threads((elements + kPack<Element> - 1) / kPack<Element>);
}

template <typename Element, op::UnaryKind kKind>
__global__ void unary_kernel(std::int64_t elements, float alpha, float beta, const Element* src, Element* dst) {
  for_flat_pack<Element>(elements, [&]<int kWidth>(std::int64_t first, std::integral_constant<int, kWidth>) {
    Values<kWidth> values = load_values<Element, kWidth>(src + first);
#pragma unroll
    for (int i = 0; i < kWidth; ++i) values.at[i] = evaluate(kKind, alpha, beta, values.at[i]);
    store_values<Element, kWidth>(dst + first, values);
  });
}

template <typename Element, op::UnaryKind kKind>
__global__ void unary_backward_kernel(std::int64_t elements, float alpha, float beta, const Element* diff_dst,
                                      const Element* data, Element* diff_src) {
  if (kKind == op::UnaryKind::clip) {  // clipped elements equal the bounds as stored
    alpha = to_float(from_float<Element>(alpha));
    beta = to_float(from_float<Element>(beta));
  }
  for_flat_pack<Element>(elements, [&]<int kWidth>(std::int64_t first, std::integral_constant<int, kWidth>) {
    Values<kWidth> values = load_values<Element, kWidth>(diff_dst + first);
    const Values<kWidth> at = load_values<Element, kWidth>(data + first);
#pragma unroll
    for (int i = 0; i < kWidth; ++i) values.at[i] *= derivative(kKind, alpha, beta, at.at[i]);
    store_values<Element, kWidth>(diff_src + first, values);
  });
}

template <typename Element, int kWidth, op::BinaryKind kKind>
__global__ void binary_kernel(const __grid_constant__ BinaryMap map, const void* a, const void* b, Element* dst) {
  const std::uint32_t position = thread_position();
  if (position >= map.walk.positions) return;
  const Offsets<2> offsets = offsets_at(map.walk, position);
  const Values<kWidth> left = load_any<kWidth>(a, map.a_type, offsets.of[0], map.walk.strides[0][0] == 0);
  const Values<kWidth> right = load_any<kWidth>(b, map.b_type, offsets.of[1], map.walk.strides[1][0] == 0);
  const bool relu = map.operation.activation == op::Activation::relu;
  Values<kWidth> values;
#pragma unroll
  for (int i = 0; i < kWidth; ++i) {
    const float value = evaluate(kKind, left.at[i], right.at[i]);
    values.at[i] = relu && value < 0 ? 0 : value;
  }
  store_values<Element, kWidth>(dst + static_cast<std::int64_t>(position) * kWidth, values);
}

template <typename Element, int kWidth>
__global__ void broadcast_kernel(const __grid_constant__ BroadcastMap map, const void* src, Element* dst) {
  const std::uint32_t position = thread_position();
  if (position >= map.walk.positions) return;
  const Offsets<1> offsets = offsets_at(map.walk, position);
  Values<kWidth> values = load_any<kWidth>(src, map.src_type, offsets.of[0], map.walk.strides[0][0] == 0);
#pragma unroll
  for (int i = 0; i < kWidth; ++i) values.at[i] *= map.scale;
  store_values<Element, kWidth>(dst + static_cast<std::int64_t>(position) * kWidth, values);
}

// The wished layout in f32 (gradients of variables); else channels last if an operand of the result's shape is, in the
// operands' narrow type if one has it.
Format binary_format(const KernelRequest& request) {
  const Shape& shape = request.node.outputs[0].shape;
  if (const Layout* wish = simple_wish(request)) return *wish;
  Format format(Layout::plain(shape.rank()));
  for (const TensorDesc& input : request.inputs) {
    if (input.shape.elements() > 1 && is_half(input.dtype)) format.dtype = input.dtype;
    if (input.shape == shape && is_simple(input.layout) && !input.layout.is_plain()) format.layout = input.layout;
  }
  return format;
}

Format broadcast_format(const op::Broadcast& operation, const KernelRequest& request) {
  const TensorDesc& src = request.inputs[0];
  if (const Layout* wish = simple_wish(request)) return *wish;
  if (src.shape == operation.shape) return as_it_comes(src);
  const int rank = operation.shape.rank();
  return rank == 4 ? activation_format(request, rank) : Format(Layout::plain(rank));
}

}  // namespace

KernelChoice make(const op::Unary& operation, const KernelRequest& request, CudaDevice& device) {
  const Format format = as_it_comes(request.inputs[0]);
  const auto launch = [operation, type = format.dtype, elements = request.inputs[0].shape.elements(), &device](
                          const Operands& operands, const RunContext&) {
    with_element(type, [&]<typename Element>(Element) {
      with_kind(operation.kind, std::make_index_sequence<kUnaryKinds>{}, [&](auto kind) {
        unary_kernel<Element, kind()><<<flat_blocks<Element>(elements), kThreads, 0, device.stream()>>>(
            elements, operation.alpha, operation.beta, operands.input<Element>(0), operands.output<Element>());
      });
    });
    check(cudaGetLastError(), "a function of one tensor");
  };
  KernelChoice choice = function_kernel(request, "own", launch);
  choice.inputs = choice.outputs = {format};
  choice.in_place = {{0, 0}};
  return choice;
}

KernelChoice make(const op::UnaryBackward& operation, const KernelRequest& request, CudaDevice& device) {
  // The forward pass's tensor keeps its format; the gradient is brought to it.
  const Format format = as_it_comes(request.inputs[1]);
  const auto launch = [operation, type = format.dtype, elements = request.inputs[1].shape.elements(), &device](
                          const Operands& operands, const RunContext&) {
    with_element(type, [&]<typename Element>(Element) {
      with_kind(operation.kind, std::make_index_sequence<kUnaryKinds>{}, [&](auto kind) {
        unary_backward_kernel<Element, kind()><<<flat_blocks<Element>(elements), kThreads, 0, device.stream()>>>(
            elements, operation.alpha, operation.beta, operands.input<Element>(0), operands.input<Element>(1),
            operands.output<Element>());
      });
    });
    check(cudaGetLastError(), "the derivative of a function of one tensor");
  };
  KernelChoice choice = function_kernel(request, "own", launch);
  choice.inputs = {format, format};
  choice.outputs = {format};
  choice.in_place = {{0, 0}, {1, 0}};
  return choice;
}

KernelChoice make(const op::Binary& operation, const KernelRequest& request, CudaDevice& device) {
  const Shape& shape = request.node.outputs[0].shape;
  const Format dst = binary_format(request);
  std::vector<Format> formats;
  std::vector<Strides> strides;
  for (const TensorDesc& input : request.inputs) {
    Format format = as_it_comes(input);
    if (input.shape == shape) format.layout = dst.layout;
    strides.push_back(broadcast_strides({format.dtype, input.shape, format.layout}, shape));
    formats.push_back(std::move(format));
  }
  const Box box(shape, dst.layout, strides);
  const int width = box.pack_width(dst.dtype);
  const BinaryMap map{operation, width, box.walk<2>(width), formats[0].dtype, formats[1].dtype, dst.dtype};
  KernelChoice choice = function_kernel(request, "own", [map, &device](const Operands& operands, const RunContext&) {
    with_packs(map.dst_type, map.width, [&]<typename Element, typename Width>(Element, Width) {
      with_kind(map.operation.kind, std::make_index_sequence<kBinaryKinds>{}, [&](auto kind) {
        binary_kernel<Element, Width::value, kind()>
            <<<blocks_of_threads(map.walk.positions), kThreads, 0, device.stream()>>>(
                map, operands.input<void>(0), operands.input<void>(1), operands.output<Element>());
      });
    });
    check(cudaGetLastError(), "arithmetic on two tensors");
  });
  choice.inputs = formats;
  choice.outputs = {dst};
  for (std::size_t i = 0; i < formats.size(); ++i) {
    if (request.inputs[i].shape == shape && formats[i] == dst) choice.in_place.emplace_back(static_cast<int>(i), 0);
  }
  return choice;
}

KernelChoice make(const op::Broadcast& operation, const KernelRequest& request, CudaDevice& device) {
  const TensorDesc& input = request.inputs[0];
  const Format src = as_it_comes(input), dst = broadcast_format(operation, request);
  const Box box(operation.shape, dst.layout,
                {broadcast_strides({src.dtype, input.shape, src.layout}, operation.shape)});
  const int width = box.pack_width(dst.dtype);
  const BroadcastMap map{operation.scale, width, box.walk<1>(width), src.dtype, dst.dtype};
  KernelChoice choice = function_kernel(request, "own", [map, &device](const Operands& operands, const RunContext&) {
    with_packs(map.dst_type, map.width, [&]<typename Element, typename Width>(Element, Width) {
      broadcast_kernel<Element, Width::value><<<blocks_of_threads(map.walk.positions), kThreads, 0, device.stream()>>>(
          map, operands.input<void>(0), operands.output<Element>());
    });
    check(cudaGetLastError(), "a broadcast");
  });
  choice.inputs = {src};
  choice.outputs = {dst};
  if (input.shape == operation.shape && src == dst) choice.in_place = {{0, 0}};
  return choice;
}

}  // namespace trireme::cuda
