#include "trireme/backend/backends.hpp"
#include "trireme/backend/cuda/formats.hpp"
#include "trireme/backend/cuda/kernels.hpp"

namespace trireme::cuda {
namespace {

class CudaBackend final : public Backend {
 public:
  CudaBackend(TuningOptions tuning, int gpu)
      : device_(std::make_unique<CudaDevice>(gpu)), tuner_(std::move(tuning), device_->versions(), *device_) {}

  std::string name() const override { return "cuda"; }
  ComputeDevice& device() const override { return *device_; }
  bool is_fast_in(Precision) const override { return true; }
  DataType shadow_type(Precision precision) const override { return activation_type(precision); }
  bool masks_from_src() const override { return true; }

  KernelChoice choose(const KernelRequest& request) const override {
    return choose_kernel(request, [&](const auto& operation) {
      if constexpr (requires { make(operation, request, *device_, tuner_); }) {
        return make(operation, request, *device_, tuner_);
      } else {
        return make(operation, request, *device_);
      }
    });
  }

  KernelChoice choose_reorder(const TensorDesc& from, const Format& to) const override {
    return make_reorder(from, to, *device_);
  }

 private:
  std::unique_ptr<CudaDevice> device_;
  Tuner tuner_;
};

}  // namespace

std::unique_ptr<Backend> make_backend(TuningOptions tuning, int gpu) {
  return std::make_unique<CudaBackend>(std::move(tuning), gpu);
}

}  // namespace trireme::cuda
