// What this backend computes without the library, as kernels. Used by the files of the families.
#pragma once

#include "trireme/backend/function_kernel.hpp"
#include "trireme/base/bfloat16.hpp"

namespace trireme::onednn {

template <typename Function>
KernelChoice own_kernel(const KernelRequest& request, Function function) {
  return function_kernel(request, "own", std::move(function));
}

// function(Element{}) with the type that activations are stored in; it returns the same type for both. An own kernel is
// a template over what it reads and writes and computes in float.
template <typename Function>
auto with_element(DataType type, Function function) {
  return type == DataType::bf16 ? function(BFloat16{}) : function(float{});
}

// Below this many elements one thread is faster than waking the others.
inline constexpr std::int64_t kParallelElements = 16384;

}  // namespace trireme::onednn
