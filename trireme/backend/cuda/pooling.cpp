#include "trireme/backend/cuda/formats.hpp"
#include "trireme/backend/cuda/kernels.hpp"
#include "trireme/backend/cuda/pooling_kernels.hpp"
#include "trireme/backend/function_kernel.hpp"
#include "trireme/base/error.hpp"

namespace trireme::cuda {
namespace {

PoolGeometry geometry_of(op::PoolKind kind, const op::Window& window, const Shape& src, const Shape& dst,
                         const Layout& layout) {
  const bool plain = layout.is_plain();
  return {.images = plain ? src[0] * src[1] : src[0],
          .channels = plain ? 1 : static_cast<int>(src[1]),
          .src_height = static_cast<int>(src[2]),
          .src_width = static_cast<int>(src[3]),
          .dst_height = static_cast<int>(dst[2]),
          .dst_width = static_cast<int>(dst[3]),
          .kernel_height = static_cast<int>(window.kernel[0]),
          .kernel_width = static_cast<int>(window.kernel[1]),
          .stride_height = static_cast<int>(window.stride[0]),
          .stride_width = static_cast<int>(window.stride[1]),
          .pad_top = static_cast<int>(window.pad_before[0]),
          .pad_left = static_cast<int>(window.pad_before[1]),
          .divide_by_inside = kind == op::PoolKind::average_inside};
}

}  // namespace

KernelChoice make(const op::Pool& operation, const KernelRequest& request, CudaDevice& device) {
  const Format format = as_it_comes(request.inputs[0]);
  const PoolGeometry geometry = geometry_of(operation.kind, operation.window, request.inputs[0].shape,
                                            request.node.outputs[0].shape, format.layout);
  const auto launch = operation.kind == op::PoolKind::max ? launch_max_pool : launch_average_pool;
  KernelChoice choice =
      function_kernel(request, kImplementation,
                      [geometry, launch, type = format.dtype, &device](const Operands& operands, const RunContext&) {
                        launch(device.stream(), geometry, type, operands.input<void>(0), operands.output<void>());
                      });
  choice.inputs = choice.outputs = {format};
  return choice;
}

KernelChoice make(const op::PoolBackward& operation, const KernelRequest& request, CudaDevice& device) {
  const bool max = operation.kind == op::PoolKind::max;
  // src and dst of the forward pass keep their format; the gradient is brought to it.
  const Format format = as_it_comes(request.inputs[max ? 1 : 0]);
  const PoolGeometry geometry =
      geometry_of(operation.kind, operation.window, operation.src_shape, request.inputs[0].shape, format.layout);
  const bool relu = operation.activation == op::Activation::relu;
  const std::int64_t cells = operation.window.kernel[0] * operation.window.kernel[1];
  if (max && cells > kMostWindowCells) {
    bad_input("'{}': a window of {} cells, expected at most {} for the gradient of max pooling on a GPU",
              request.node.name, cells, kMostWindowCells);
  }
  KernelChoice choice =
      function_kernel(request, kImplementation,
                      [geometry, max, relu, type = format.dtype, &device](const Operands& operands, const RunContext&) {
                        if (max) {
                          launch_max_pool_backward(device.stream(), geometry, type,
                                                   {.diff_dst = operands.input<void>(0),
                                                    .src = operands.input<void>(1),
                                                    .scratch = operands.scratch<void>(),
                                                    .diff_src = operands.output<void>(),
                                                    .relu = relu});
                        } else {
                          launch_average_pool_backward(device.stream(), geometry, type, operands.input<void>(0),
                                                       operands.output<void>());
                        }
                      });
  choice.inputs.assign(request.inputs.size(), format);
  if (max) choice.scratch_bytes = max_pool_backward_scratch_bytes(geometry, format.dtype);
  choice.outputs = {format};
  return choice;
}

}  // namespace trireme::cuda
