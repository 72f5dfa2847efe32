#include <algorithm>

#include "trireme/backend/cuda/elementwise_kernels.hpp"
#include "trireme/backend/cuda/formats.hpp"
#include "trireme/backend/cuda/kernels.hpp"
#include "trireme/backend/cuda/strided.hpp"
#include "trireme/backend/function_kernel.hpp"

namespace trireme::cuda {
namespace {

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

// Samples in memory order.
DropoutMap dropout_map(const op::Dropout& operation, const Shape& shape, const Format& format) {
  const std::int64_t per_sample = shape.elements() / shape[0];
  const bool row_major = format.layout.is_plain() || shape[1] == per_sample || shape[1] == 1;
  const std::int64_t channels = row_major ? per_sample : shape[1];
  return {operation, shape[0], channels, per_sample / channels, format.dtype};
}

}  // namespace

KernelChoice make(const op::Unary& operation, const KernelRequest& request, CudaDevice& device) {
  const Format format = as_it_comes(request.inputs[0]);
  const FlatTensor tensor{request.inputs[0].shape.elements(), format.dtype};
  KernelChoice choice = function_kernel(request, "own", [=, &device](const Operands& operands, const RunContext&) {
    launch_unary(device.stream(), operation, tensor, operands.input<void>(0), operands.output<void>());
  });
  choice.inputs = choice.outputs = {format};
  choice.in_place = {{0, 0}};
  return choice;
}

KernelChoice make(const op::UnaryBackward& operation, const KernelRequest& request, CudaDevice& device) {
  // The forward pass's tensor keeps its format; the gradient is brought to it.
  const Format format = as_it_comes(request.inputs[1]);
  const FlatTensor tensor{request.inputs[1].shape.elements(), format.dtype};
  KernelChoice choice = function_kernel(request, "own", [=, &device](const Operands& operands, const RunContext&) {
    launch_unary_backward(device.stream(), operation, tensor, operands.input<void>(0), operands.input<void>(1),
                          operands.output<void>());
  });
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
    launch_binary(device.stream(), map, operands.input<void>(0), operands.input<void>(1), operands.output<void>());
  });
  choice.inputs = formats;
  choice.outputs = {dst};
  for (std::size_t i = 0; i < formats.size(); ++i) {
    if (request.inputs[i].shape == shape && formats[i] == dst) choice.in_place.emplace_back(static_cast<int>(i), 0);
  }
  return choice;
}

KernelChoice make(const op::Dropout& operation, const KernelRequest& request, CudaDevice& device) {
  const Format format = as_it_comes(request.inputs[0]);
  const DropoutMap map = dropout_map(operation, request.inputs[0].shape, format);
  KernelChoice choice = function_kernel(request, "own", [map, &device](const Operands& operands, const RunContext&) {
    launch_dropout(device.stream(), map, device.run_values(), operands.input<void>(0), operands.output<void>());
  });
  choice.inputs = choice.outputs = {format};
  choice.in_place = {{0, 0}};
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
    launch_broadcast(device.stream(), map, operands.input<void>(0), operands.output<void>());
  });
  choice.inputs = {src};
  choice.outputs = {dst};
  if (input.shape == operation.shape && src == dst) choice.in_place = {{0, 0}};
  return choice;
}

}  // namespace trireme::cuda
