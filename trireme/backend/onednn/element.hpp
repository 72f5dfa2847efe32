// The types that the own kernels store activations in. A kernel is a template over the type of what it reads and writes
// and computes in float; which one is wanted is known when it is chosen.
#pragma once

#include "trireme/base/bfloat16.hpp"
#include "trireme/plan/backend.hpp"

namespace trireme::onednn {

// function(Element{}) with the type that is meant; it returns the same type for both.
template <typename Function>
auto with_element(DataType type, Function function) {
  return type == DataType::bf16 ? function(BFloat16{}) : function(float{});
}

}  // namespace trireme::onednn
