#include "trireme/backend/cuda/reduction.hpp"

#include "trireme/backend/cuda/formats.hpp"
#include "trireme/backend/cuda/kernels.hpp"
#include "trireme/backend/function_kernel.hpp"

namespace trireme::cuda {
namespace {

// By axis; no axes mean all.
std::vector<bool> reduced_axes(const std::vector<int>& axes, int rank) {
  std::vector<bool> reduces(rank, axes.empty());
  for (const int axis : axes) reduces[axis] = true;
  return reduces;
}

// Sums of activations that are activations themselves have their type and, with all axes kept, their layout. Others are
// f32: losses, gradients of variables.
Format result_format(const KernelRequest& request, const Format& src) {
  const Layout* const wish = simple_wish(request);
  const int rank = request.node.outputs[0].shape.rank();
  const bool activation = rank >= 2 && wish == nullptr;
  const DataType type = activation ? src.dtype : DataType::f32;
  if (rank != request.inputs[0].shape.rank()) return {Layout::plain(rank), type};
  return {wish != nullptr ? *wish : src.layout, type};
}

KernelChoice reduction_kernel(const KernelRequest& request, const Format& src, const Format& dst, Reduction reduction,
                              CudaDevice& device) {
  const std::int64_t scratch_bytes = reduction.scratch_bytes();
  KernelChoice choice = function_kernel(
      request, "own", [plan = std::move(reduction), &device](const Operands& operands, const RunContext&) {
        plan.run(device.stream(), operands.input<void>(0), operands.output<void>(), operands.scratch<std::byte>());
      });
  choice.inputs = {src};
  choice.outputs = {dst};
  choice.scratch_bytes = scratch_bytes;
  return choice;
}

}  // namespace

KernelChoice make(const op::Reduce& operation, const KernelRequest& request, CudaDevice& device) {
  const Shape& shape = request.inputs[0].shape;
  const Format src = as_it_comes(request.inputs[0]);
  const Format dst = result_format(request, src);
  const std::int64_t terms = shape.elements() / request.node.outputs[0].shape.elements();
  const bool mean = operation.kind == op::ReduceKind::mean;
  const bool maximum = operation.kind == op::ReduceKind::max;
  const ReductionTypes types{.accumulation = maximum ? Accumulation::maximum : Accumulation::sum,
                             .src = src.dtype,
                             .dst = dst.dtype,
                             .scale = mean ? static_cast<float>(1.0 / static_cast<double>(terms)) : 1.0f};
  // Without the reduced axes, a result of fewer axes is plain.
  const Layout order = operation.keep_dims ? dst.layout : Layout::plain(shape.rank());
  return reduction_kernel(
      request, src, dst,
      Reduction({src.dtype, shape, src.layout}, reduced_axes(operation.axes, shape.rank()), order, types, device),
      device);
}

KernelChoice make(const op::L2Loss& operation, const KernelRequest& request, CudaDevice& device) {
  const Shape& shape = request.inputs[0].shape;
  const Format src = as_it_comes(request.inputs[0]);
  const Format dst = Layout::plain(0);
  const ReductionTypes types{
      .accumulation = Accumulation::sum_of_squares, .src = src.dtype, .dst = dst.dtype, .scale = operation.scale / 2};
  return reduction_kernel(
      request, src, dst,
      Reduction({src.dtype, shape, src.layout}, reduced_axes({}, shape.rank()), src.layout, types, device), device);
}

}  // namespace trireme::cuda
