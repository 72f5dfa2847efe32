#include "trireme/backend/backends.hpp"
#include "trireme/backend/reference/kernels.hpp"

namespace trireme::reference {
namespace {

class ReferenceBackend final : public Backend {
 public:
  std::string name() const override { return "reference"; }

  KernelChoice choose(const KernelRequest& request) const override {
    return choose_kernel(request, [&](const auto& operation) { return make(operation, request); });
  }

  KernelChoice choose_reorder(const TensorDesc& from, const Format& to) const override {
    return make_reorder(from, to);
  }
};

}  // namespace

std::unique_ptr<Backend> make_backend() { return std::make_unique<ReferenceBackend>(); }

}  // namespace trireme::reference
