// From a request to the factory of its operation, for the choose() of every backend.
#pragma once

#include <type_traits>
#include <variant>

#include "trireme/base/error.hpp"
#include "trireme/plan/backend.hpp"

namespace trireme {

// make(operation) with the node's operation by its own type. A source is an error: the plan gives it memory, no kernel.
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
