#include "trireme/backend/backends.hpp"
#include "trireme/backend/onednn/dnnl_api.hpp"
#include "trireme/backend/onednn/kernels.hpp"

namespace trireme::onednn {
namespace {

class OneDnnBackend final : public Backend {
 public:
  explicit OneDnnBackend(TuningOptions tuning) : tuner_(std::move(tuning), "oneDNN " + library_version()) {}

  std::string name() const override { return "onednn"; }
  bool splits_batches() const override { return true; }
  bool is_fast_in(Precision precision) const override {
    return precision == Precision::fp32 || (precision == Precision::bf16 && has_fast_bf16());
  }

  KernelChoice choose(const KernelRequest& request) const override {
    try {
      return choose_kernel(request, [&](const auto& operation) {
        if constexpr (requires { make(operation, request, engine_, tuner_); }) {
          return make(operation, request, engine_, tuner_);
        } else {
          return make(operation, request, engine_);
        }
      });
    } catch (const dnnl::error& error) {
      fail(ErrorKind::failed, "oneDNN {} refused '{}' ({}): {}; the reference backend can run it", library_version(),
           request.node.name, name_of(request.node.op), error.what());
    }
  }

  KernelChoice choose_reorder(const TensorDesc& from, const Format& to) const override {
    return make_reorder(from, to, engine_);
  }

 private:
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  Tuner tuner_;
};

}  // namespace

std::unique_ptr<Backend> make_backend(TuningOptions tuning) {
  return std::make_unique<OneDnnBackend>(std::move(tuning));
}

}  // namespace trireme::onednn
