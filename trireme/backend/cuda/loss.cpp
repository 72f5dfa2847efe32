#include "trireme/backend/cuda/formats.hpp"
#include "trireme/backend/cuda/kernels.hpp"
#include "trireme/backend/cuda/loss_kernels.hpp"
#include "trireme/backend/function_kernel.hpp"

namespace trireme::cuda {
namespace {

LossRows rows_of(const Shape& shape) {
  const std::int64_t width = shape[shape.rank() - 1];
  return {.count = shape.elements() / width, .width = width};
}

// Contiguous rows, in the input's type.
Format rows_as_they_come(const TensorDesc& input) { return {Layout::plain(input.shape.rank()), input.dtype}; }

// Gradients go back in the type of the layers' activations.
Format gradient_format(const KernelRequest& request) {
  return {Layout::plain(request.node.outputs[0].shape.rank()), activation_type(request.precision)};
}

}  // namespace

KernelChoice make(const op::Softmax&, const KernelRequest& request, CudaDevice& device) {
  const Format format = rows_as_they_come(request.inputs[0]);
  KernelChoice choice =
      function_kernel(request, kImplementation,
                      [rows = rows_of(request.inputs[0].shape), type = format.dtype, &device](const Operands& operands,
                                                                                              const RunContext&) {
                        launch_softmax(device.stream(), rows, type, operands.input<void>(0), operands.output());
                      });
  choice.inputs = {format};
  if (format.dtype == DataType::f32) choice.in_place = {{0, 0}};
  return choice;
}

KernelChoice make(const op::SoftmaxBackward&, const KernelRequest& request, CudaDevice& device) {
  const Format diff_dst = rows_as_they_come(request.inputs[0]);
  const Format diff_src = gradient_format(request);
  KernelChoice choice =
      function_kernel(request, kImplementation,
                      [rows = rows_of(request.inputs[0].shape), diff_dst_type = diff_dst.dtype,
                       diff_src_type = diff_src.dtype, &device](const Operands& operands, const RunContext&) {
                        launch_softmax_backward(device.stream(), rows,
                                                {.diff_dst_type = diff_dst_type,
                                                 .diff_dst = operands.input<void>(0),
                                                 .dst = operands.input(1),
                                                 .diff_src_type = diff_src_type,
                                                 .diff_src = operands.output<void>()});
                      });
  choice.inputs[0] = diff_dst;
  choice.outputs = {diff_src};
  if (diff_dst == diff_src) choice.in_place = {{0, 0}};
  return choice;
}

KernelChoice make(const op::SoftmaxCrossEntropy& operation, const KernelRequest& request, CudaDevice& device) {
  const Format logits = rows_as_they_come(request.inputs[0]);
  KernelChoice choice = function_kernel(request, kImplementation,
                                        [rows = rows_of(request.inputs[0].shape), smoothing = operation.label_smoothing,
                                         type = logits.dtype, &device](const Operands& operands, const RunContext&) {
                                          launch_cross_entropy(device.stream(), rows, smoothing,
                                                               {.logits_type = type,
                                                                .logits = operands.input<void>(0),
                                                                .labels = operands.input<std::int32_t>(1),
                                                                .losses = operands.output(0),
                                                                .probabilities = operands.output(1)});
                                        });
  choice.inputs[0] = logits;
  return choice;
}

KernelChoice make(const op::SoftmaxCrossEntropyBackward& operation, const KernelRequest& request, CudaDevice& device) {
  const Format diff_logits = gradient_format(request);
  KernelChoice choice =
      function_kernel(request, kImplementation,
                      [rows = rows_of(request.inputs[0].shape), smoothing = operation.label_smoothing,
                       type = diff_logits.dtype, &device](const Operands& operands, const RunContext&) {
                        launch_cross_entropy_backward(device.stream(), rows, smoothing,
                                                      {.probabilities = operands.input(0),
                                                       .labels = operands.input<std::int32_t>(1),
                                                       .diff_losses = operands.input(2),
                                                       .diff_logits_type = type,
                                                       .diff_logits = operands.output<void>()});
                      });
  choice.outputs = {diff_logits};
  if (diff_logits.dtype == DataType::f32) choice.in_place = {{0, 0}};
  return choice;
}

KernelChoice make(const op::TopKAccuracy& operation, const KernelRequest& request, CudaDevice& device) {
  const Format logits = rows_as_they_come(request.inputs[0]);
  const LossRows rows = rows_of(request.inputs[0].shape);
  KernelChoice choice = function_kernel(
      request, kImplementation,
      [rows, k = operation.k, type = logits.dtype, &device](const Operands& operands, const RunContext&) {
        launch_top_k(device.stream(), rows, k,
                     {.logits_type = type,
                      .logits = operands.input<void>(0),
                      .labels = operands.input<std::int32_t>(1),
                      .hits = operands.scratch<std::int32_t>(),
                      .share = operands.output()});
      });
  choice.inputs[0] = logits;
  choice.scratch_bytes = rows.count * static_cast<std::int64_t>(sizeof(std::int32_t));
  return choice;
}

}  // namespace trireme::cuda
