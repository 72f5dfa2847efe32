#include "trireme/backend/onednn/backend.hpp"

#include <type_traits>

#include "trireme/backend/onednn/dnnl_api.hpp"
#include "trireme/backend/onednn/kernels.hpp"
#include "trireme/base/error.hpp"

namespace trireme::onednn {
namespace {

template <typename Op>
inline constexpr bool kIsSource =
    std::is_same_v<Op, op::Placeholder> || std::is_same_v<Op, op::Variable> || std::is_same_v<Op, op::Constant>;

class OneDnnBackend final : public Backend {
 public:
  std::string name() const override { return "onednn"; }

  KernelChoice choose(const KernelRequest& request) const override {
    try {
      return std::visit(
          [&]<typename Op>(const Op& operation) -> KernelChoice {
            if constexpr (kIsSource<Op>) {
              fail(ErrorKind::failed, "'{}' is a {}: a value, not a computation; no backend has a kernel for it",
                   request.node.name, Op::kName);
            } else {
              return make(operation, request, engine_);
            }
          },
          request.node.op);
    } catch (const dnnl::error& error) {
      fail(ErrorKind::failed, "oneDNN {} refused '{}' ({}): {}; the reference backend can run it", library_version(),
           request.node.name, name_of(request.node.op), error.what());
    }
  }

  KernelChoice choose_reorder(const TensorDesc& from, const Layout& to) const override {
    return make_reorder(from, to, engine_);
  }

 private:
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
};

}  // namespace

std::unique_ptr<Backend> make_backend() { return std::make_unique<OneDnnBackend>(); }

}  // namespace trireme::onednn
