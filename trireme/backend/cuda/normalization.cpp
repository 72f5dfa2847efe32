// Batch normalization on the GPU: maps operands to the launches of batch_norm_kernels.hpp.
#include "trireme/backend/cuda/batch_norm_kernels.hpp"
#include "trireme/backend/cuda/formats.hpp"
#include "trireme/backend/cuda/kernels.hpp"
#include "trireme/backend/function_kernel.hpp"

namespace trireme::cuda {
namespace {

NormShape norm_shape(const TensorDesc& src, const Format& format) {
  const std::int64_t batch = src.shape[0], channels = src.shape[1];
  const std::int64_t inner = src.shape.elements() / (batch * channels);
  const bool channels_last = inner == 1 || format.layout == Layout::channels_last(src.shape.rank());
  return {batch, channels, inner, channels_last, format.dtype};
}

// Calls launch(place, operands) with its own memory for the counters, which must be zero at the first run.
template <typename Launch>
class NormKernel final : public Kernel {
 public:
  NormKernel(CudaDevice& device, const NormShape& shape, Launch launch)
      : device_(device), shape_(shape), launch_(std::move(launch)) {}

  void bind(const KernelMemory& memory) override {
    memory_ = memory;
    constexpr std::int64_t kCounterBytes = sizeof(unsigned);
    counters_ = device_.allocate(batch_norm_counters(shape_) * kCounterBytes, "the counters of batch normalisation");
  }
  void run(const RunContext&) override {
    launch_(NormWorkspace{.stream = device_.stream(),
                          .multiprocessors = device_.multiprocessors(),
                          .scratch = memory_.scratch,
                          .counters = static_cast<unsigned*>(counters_.at(0))},
            Operands(memory_));
  }

 private:
  CudaDevice& device_;
  NormShape shape_;
  Launch launch_;
  KernelMemory memory_;
  DeviceMemory counters_;
};

// Tensors of src's shape take src's format; the others are f32 vectors.
template <typename Launch>
KernelChoice norm_kernel(const KernelRequest& request, CudaDevice& device, Launch launch) {
  const TensorDesc& src = request.inputs[0];
  const Format format = as_it_comes(src);
  const NormShape shape = norm_shape(src, format);
  const auto format_of = [&](const Shape& of) {
    return of.rank() == src.shape.rank() ? format : Format(Layout::plain(of.rank()));
  };
  KernelChoice choice;
  for (const TensorDesc& input : request.inputs) choice.inputs.push_back(format_of(input.shape));
  for (const TensorType& output : request.node.outputs) choice.outputs.push_back(format_of(output.shape));
  choice.scratch_bytes = batch_norm_scratch_bytes(shape, device.multiprocessors());
  choice.implementation = "own";
  const auto with_shape = [shape, launch](const NormWorkspace& place, const Operands& operands) {
    launch(place, shape, operands);
  };
  choice.kernel = std::make_unique<NormKernel<decltype(with_shape)>>(device, shape, with_shape);
  return choice;
}

// statistics: the number of inputs between beta and the addend.
template <typename Operation>
NormForward forward_arguments(const Operation& operation, const Operands& operands, std::size_t statistics) {
  const std::size_t beta = operation.gamma ? 2 : 1;
  return {.src = operands.input<void>(0),
          .gamma = operation.gamma ? operands.input(1) : nullptr,
          .beta = operands.input(beta),
          .addend = operation.add ? operands.input<void>(beta + 1 + statistics) : nullptr,
          .dst = operands.output<void>(0),
          .epsilon = operation.epsilon,
          .relu = operation.activation == op::Activation::relu};
}

// dst may overwrite the addend or src.
void allow_in_place(bool add, const KernelRequest& request, KernelChoice& choice) {
  if (add) choice.in_place.emplace_back(static_cast<int>(request.inputs.size()) - 1, 0);
  choice.in_place.emplace_back(0, 0);
}

}  // namespace

KernelChoice make(const op::BatchNorm& operation, const KernelRequest& request, CudaDevice& device) {
  KernelChoice choice = norm_kernel(
      request, device, [operation](const NormWorkspace& place, const NormShape& shape, const Operands& operands) {
        launch_batch_norm(place, shape, forward_arguments(operation, operands, 0), operands.output(1),
                          operands.output(2));
      });
  allow_in_place(operation.add, request, choice);
  return choice;
}

KernelChoice make(const op::BatchNormBackward& operation, const KernelRequest& request, CudaDevice& device) {
  const int diff_dst = operation.gamma ? 4 : 3;
  const int diff_addend = operation.gamma ? 3 : 2;
  KernelChoice choice = norm_kernel(
      request, device, [operation](const NormWorkspace& place, const NormShape& shape, const Operands& operands) {
        NormBackward arguments{};
        arguments.src = operands.input<void>(0);
        arguments.mean = operands.input(1);
        arguments.variance = operands.input(2);
        std::size_t next = 3;
        if (operation.gamma) arguments.gamma = operands.input(next++);
        arguments.diff_dst = operands.input<void>(next++);
        if (operation.sum) arguments.diff_more = operands.input<void>(next++);
        if (operation.activation == op::Activation::relu) {
          if (operation.mask_from_src) {
            arguments.beta = operands.input(next);
          } else {
            arguments.dst = operands.input<void>(next);
          }
        }
        next = 2;
        arguments.diff_src = operands.output<void>(0);
        arguments.diff_beta = operands.output(1);
        if (operation.gamma) arguments.diff_gamma = operands.output(next++);
        if (operation.add) arguments.diff_addend = operands.output<void>(next);
        arguments.epsilon = operation.epsilon;
        launch_batch_norm_backward(place, shape, arguments);
      });
  const int of_diff = operation.add ? diff_addend : 0;
  choice.in_place = {{diff_dst, of_diff}};
  if (operation.sum) choice.in_place.emplace_back(diff_dst + 1, of_diff);
  choice.in_place.emplace_back(0, 0);
  return choice;
}

KernelChoice make(const op::BatchNormInference& operation, const KernelRequest& request, CudaDevice& device) {
  KernelChoice choice = norm_kernel(
      request, device, [operation](const NormWorkspace& place, const NormShape& shape, const Operands& operands) {
        const std::size_t mean = operation.gamma ? 3 : 2;
        launch_batch_norm_inference(place, shape, forward_arguments(operation, operands, 2), operands.input(mean),
                                    operands.input(mean + 1));
      });
  allow_in_place(operation.add, request, choice);
  return choice;
}

}  // namespace trireme::cuda
