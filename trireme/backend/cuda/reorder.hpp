// Arguments of launch_any_reorder, which copies between tensors in any layouts. For the factories.
#pragma once

#include <array>

#include "trireme/backend/cuda/reorder_kernels.hpp"
#include "trireme/plan/layout.hpp"

namespace trireme::cuda {

// to[i] = from[i - shift] if that is inside from, else 0. Error(bad_input) if there are too many axes or blocks.
AnyReorder any_reorder(const TensorDesc& from, const TensorDesc& to, std::array<std::int64_t, 4> shift = {});

}  // namespace trireme::cuda
