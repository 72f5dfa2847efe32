// Makes kernels of what this backend computes without oneDNN. Used by the files of all families.
#pragma once

#include "trireme/backend/function_kernel.hpp"
#include "trireme/base/bfloat16.hpp"

namespace trireme::onednn {

template <typename Function>
KernelChoice own_kernel(const KernelRequest& request, Function function) {
  return function_kernel(request, "own", std::move(function));
}

// function(Element{}) with the storage type of activations. Own kernels are templates over it and compute in float.
template <typename Function>
auto with_element(DataType type, Function function) {
  return type == DataType::bf16 ? function(BFloat16{}) : function(float{});
}

// Below this many elements one thread is faster than waking the others.
inline constexpr std::int64_t kParallelElements = 16384;

}  // namespace trireme::onednn
