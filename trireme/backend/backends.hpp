// The backends, as the registry makes them, and what they share: choosing a kernel by the operation.
#pragma once

#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "trireme/backend/tuner.hpp"
#include "trireme/base/error.hpp"
#include "trireme/plan/backend.hpp"

namespace trireme {

// The oracle for all tests: plain loops over plain layouts, summing in float64.
namespace reference {
std::unique_ptr<Backend> make_backend();
}

// The CPU backend: oneDNN's primitives on oneDNN's layouts, and own vectorized kernels if oneDNN has none that fits.
namespace onednn {
std::unique_ptr<Backend> make_backend(TuningOptions tuning);
}

// The backend for NVIDIA GPUs: convolutions by cuDNN, matrix products by cuBLAS, own kernels.
namespace cuda {
// Error(unavailable) if the machine has no usable GPU or driver, Error(bad_input) if it has no GPU of this number.
std::unique_ptr<Backend> make_backend(TuningOptions tuning, int gpu);

// problem: why there are none.
struct Gpus {
  int count = 0;
  std::string problem = {};
};
Gpus find_gpus();

// Names and versions of CUDA's libraries that this was built with.
std::vector<std::pair<std::string, std::string>> library_versions();
}  // namespace cuda

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
