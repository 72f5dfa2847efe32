// What this backend computes without the library, as kernels. Used by the files of the families.
#pragma once

#include "trireme/backend/function_kernel.hpp"

namespace trireme::onednn {

template <typename Function>
KernelChoice own_kernel(const KernelRequest& request, Function function) {
  return function_kernel(request, "own", std::move(function));
}

// Below this many elements one thread is faster than waking the others.
inline constexpr std::int64_t kParallelElements = 16384;

}  // namespace trireme::onednn
