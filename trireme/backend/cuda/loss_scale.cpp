#include <algorithm>

#include "trireme/backend/cuda/formats.hpp"
#include "trireme/backend/cuda/kernels.hpp"
#include "trireme/backend/cuda/loss_scale_kernels.hpp"
#include "trireme/backend/function_kernel.hpp"

namespace trireme::cuda {
namespace {

// All gradients in one launch.
class UnscaledRatesKernel final : public Kernel {
 public:
  UnscaledRatesKernel(std::vector<std::int64_t> elements, CudaDevice& device)
      : elements_(std::move(elements)), device_(device) {}

  void bind(const KernelMemory& memory) override {
    const Operands operands(memory);
    std::vector<GradientPiece> pieces;
    for (std::size_t i = 0; i < elements_.size(); ++i) {
      const float* const gradient = operands.input(i + 2);
      for (std::int64_t begin = 0; begin < elements_[i]; begin += kGradientPiece) {
        pieces.push_back({gradient + begin, std::min(kGradientPiece, elements_[i] - begin)});
      }
    }
    const auto bytes = static_cast<std::int64_t>(pieces.size() * sizeof(GradientPiece));
    table_ = device_.allocate(bytes, "the table of gradients");
    device_.upload(table_.at(0), pieces.data(), bytes);
    device_.synchronize();
    launch_ = {.learning_rate = operands.input(0),
               .scale = operands.input(1),
               .pieces = static_cast<const GradientPiece*>(table_.at(0)),
               .count = static_cast<int>(pieces.size()),
               .rates = operands.output()};
  }

  void run(const RunContext&) override { launch_unscaled_rates(device_.stream(), launch_); }

 private:
  std::vector<std::int64_t> elements_;  // of each gradient
  CudaDevice& device_;
  DeviceMemory table_;
  UnscaledRatesLaunch launch_;
};

}  // namespace

KernelChoice make(const op::UnscaledRates&, const KernelRequest& request, CudaDevice& device) {
  KernelChoice choice;
  choice.inputs = {Layout::plain(0), Layout::plain(0)};
  std::vector<std::int64_t> elements;
  for (std::size_t i = 2; i < request.inputs.size(); ++i) {
    const TensorDesc& gradient = request.inputs[i];
    choice.inputs.emplace_back(as_it_comes(gradient).layout);
    elements.push_back(gradient.shape.elements());
  }
  choice.outputs = {Layout::plain(1)};
  choice.implementation = kImplementation;
  choice.kernel = std::make_unique<UnscaledRatesKernel>(std::move(elements), device);
  return choice;
}

KernelChoice make(const op::UpdateLossScale& operation, const KernelRequest& request, CudaDevice& device) {
  const auto interval = static_cast<float>(operation.growth_interval);
  return function_kernel(request, kImplementation, [interval, &device](const Operands& operands, const RunContext&) {
    launch_update_loss_scale(device.stream(), {.scale = operands.variable(0),
                                               .good_updates = operands.variable(1),
                                               .skipped_updates = operands.variable(2),
                                               .rates = operands.input(3),
                                               .growth_interval = interval});
  });
}

}  // namespace trireme::cuda
