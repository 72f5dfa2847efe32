// The host's side of batch normalization: kernels of batch_norm_forward.cu and batch_norm_backward.cu. A first pass
// sums per channel and a second one writes; inference has only the second.
#pragma once

#include "trireme/backend/cuda/formats.hpp"
#include "trireme/backend/cuda/kernels.hpp"
#include "trireme/backend/function_kernel.hpp"

namespace trireme::cuda {

// A tensor as batch x channels x inner, of f32, bf16 or f16; or as rows of all channels (channels last).
struct NormShape {
  std::int64_t batch, channels, inner;
  bool channels_last;
  DataType type;
  std::int64_t per_channel() const { return batch * inner; }
};

struct NormWorkspace {
  cudaStream_t stream;
  int multiprocessors;
  void* scratch;       // batch_norm_scratch_bytes()
  unsigned* counters;  // batch_norm_counters(), zero before and after each launch, in memory that nothing else uses
};

std::int64_t batch_norm_scratch_bytes(const NormShape& shape, int multiprocessors);
std::int64_t batch_norm_counters(const NormShape& shape);

inline NormShape norm_shape(const TensorDesc& src, const Format& format) {
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

  std::unique_ptr<Kernel> another() const override { return std::make_unique<NormKernel>(device_, shape_, launch_); }
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

}  // namespace trireme::cuda
