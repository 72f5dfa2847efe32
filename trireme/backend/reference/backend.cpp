#include "trireme/backend/reference/backend.hpp"

#include <type_traits>

#include "trireme/backend/reference/kernels.hpp"
#include "trireme/base/error.hpp"

namespace trireme::reference {
namespace {

template <typename Op>
inline constexpr bool kIsSource =
    std::is_same_v<Op, op::Placeholder> || std::is_same_v<Op, op::Variable> || std::is_same_v<Op, op::Constant>;

class ReferenceBackend final : public Backend {
 public:
  std::string name() const override { return "reference"; }

  KernelChoice choose(const KernelRequest& request) const override {
    return std::visit(
        [&]<typename Op>(const Op& operation) -> KernelChoice {
          if constexpr (kIsSource<Op>) {
            fail(ErrorKind::failed, "'{}' is a {}: a value, not a computation; no backend has a kernel for it",
                 request.node.name, Op::kName);
          } else {
            return make(operation, request);
          }
        },
        request.node.op);
  }

  KernelChoice choose_reorder(const TensorDesc& from, const Layout& to) const override {
    return make_reorder(from, to);
  }
};

}  // namespace

std::unique_ptr<Backend> make_backend() { return std::make_unique<ReferenceBackend>(); }

}  // namespace trireme::reference
