// A kernel that works in other formats than its neighbours, made to look as if it did not: what it reads is reordered
// into scratch memory first, what it writes afterwards. So it can be timed, reorders included, beside kernels that need
// none. Used for convolutions.
#pragma once

#include "trireme/backend/onednn/dnnl_api.hpp"
#include "trireme/plan/backend.hpp"

namespace trireme::onednn {

// inputs, outputs: the formats that the result is to have.
KernelChoice with_reorders(KernelChoice inner, const KernelRequest& request, const std::vector<Format>& inputs,
                           const std::vector<Format>& outputs, const dnnl::engine& engine);

}  // namespace trireme::onednn
