#include "trireme/backend/cuda/elementwise_kernels.hpp"
#include "trireme/backend/cuda/formats.hpp"
#include "trireme/backend/cuda/kernels.hpp"
#include "trireme/backend/cuda/reduction.hpp"
#include "trireme/backend/function_kernel.hpp"

namespace trireme::cuda {

// An addition with one value per channel, repeated along all other axes.
KernelChoice make(const op::Bias& operation, const KernelRequest& request, CudaDevice& device) {
  const Shape& shape = request.inputs[0].shape;
  const Format format = as_it_comes(request.inputs[0]);
  Strides by_channel(static_cast<std::size_t>(shape.rank()), 0);
  by_channel[1] = 1;
  const Box box(shape, format.layout, {axis_strides(shape, format.layout), by_channel});
  const int width = box.pack_width(format.dtype);
  const BinaryMap map{{.kind = op::BinaryKind::add, .activation = operation.activation},
                      width,
                      box.walk<2>(width),
                      format.dtype,
                      DataType::f32,
                      format.dtype};
  KernelChoice choice = function_kernel(request, "own", [map, &device](const Operands& operands, const RunContext&) {
    launch_binary(device.stream(), map, operands.input<void>(0), operands.input<void>(1), operands.output<void>());
  });
  choice.inputs[0] = choice.outputs[0] = format;
  choice.in_place = {{0, 0}};
  return choice;
}

KernelChoice make(const op::BiasBackward&, const KernelRequest& request, CudaDevice& device) {
  const Shape& shape = request.inputs[0].shape;
  const Format format = as_it_comes(request.inputs[0]);
  std::vector<bool> reduces(static_cast<std::size_t>(shape.rank()), true);
  reduces[1] = false;
  const ReductionTypes types{
      .accumulation = Accumulation::sum, .src = format.dtype, .dst = DataType::f32, .scale = 1.0f};
  const Reduction reduction({format.dtype, shape, format.layout}, reduces, format.layout, types, device);
  KernelChoice choice =
      function_kernel(request, "own", [reduction, &device](const Operands& operands, const RunContext&) {
        reduction.run(device.stream(), operands.input<void>(0), operands.output<void>(), operands.scratch<std::byte>());
      });
  choice.inputs[0] = format;
  choice.scratch_bytes = reduction.scratch_bytes();
  return choice;
}

}  // namespace trireme::cuda
