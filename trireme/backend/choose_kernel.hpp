// Calls the factory for a request's operation. Every backend's choose() uses it.
#pragma once

#include <type_traits>
#include <variant>

#include "trireme/base/error.hpp"
#include "trireme/plan/backend.hpp"

namespace trireme {

// Calls make(operation) with the node's operation in its own type. Error(failed) for a source, which has no kernel.
template <typename Make>
KernelChoice choose_kernel(const KernelRequest& request, Make make) {
  return std::visit(
      [&]<typename Op>(const Op& operation) -> KernelChoice {
        if constexpr (std::is_same_v<Op, op::Placeholder> || std::is_same_v<Op, op::Variable> ||
                      std::is_same_v<Op, op::Constant>) {
          fail(ErrorKind::failed, "'{}' is a {}: a value, not a computation; no backend has a kernel for it",
               request.node.name, Op::kName);
        } else {
          return make(operation);
        }
      },
      request.node.op);
}

}  // namespace trireme
