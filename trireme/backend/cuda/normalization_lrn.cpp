#include "trireme/backend/cuda/formats.hpp"
#include "trireme/backend/cuda/kernels.hpp"
#include "trireme/backend/cuda/normalization_lrn_kernels.hpp"
#include "trireme/backend/function_kernel.hpp"

namespace trireme::cuda {
namespace {

template <typename Operation>
LrnGeometry geometry_of(const Operation& operation, const Shape& shape, const Layout& layout) {
  const std::int64_t image = shape[2] * shape[3];
  const bool plain = layout.is_plain();
  return {.outer = plain ? shape[0] : shape[0] * image,
          .channels = shape[1],
          .inner = plain ? image : 1,
          .size = operation.size,
          .alpha_per_cell = operation.alpha / static_cast<float>(operation.size),
          .beta = operation.beta,
          .k = operation.k};
}

}  // namespace

KernelChoice make(const op::Lrn& operation, const KernelRequest& request, CudaDevice& device) {
  const Format format = as_it_comes(request.inputs[0]);
  const LrnGeometry geometry = geometry_of(operation, request.inputs[0].shape, format.layout);
  KernelChoice choice = function_kernel(
      request, kImplementation, [geometry, type = format.dtype, &device](const Operands& operands, const RunContext&) {
        launch_lrn(device.stream(), geometry, type, operands.input<void>(0), operands.output<void>());
      });
  choice.inputs = choice.outputs = {format};
  return choice;
}

KernelChoice make(const op::LrnBackward& operation, const KernelRequest& request, CudaDevice& device) {
  const Format format = as_it_comes(request.inputs[0]);
  const LrnGeometry geometry = geometry_of(operation, request.inputs[0].shape, format.layout);
  KernelChoice choice = function_kernel(
      request, kImplementation, [geometry, type = format.dtype, &device](const Operands& operands, const RunContext&) {
        launch_lrn_backward(device.stream(), geometry, type, operands.input<void>(0), operands.input<void>(1),
                            operands.output<void>());
      });
  choice.inputs = {format, format};
  choice.outputs = {format};
  return choice;
}

}  // namespace trireme::cuda
