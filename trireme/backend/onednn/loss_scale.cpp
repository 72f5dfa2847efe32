// The reference's: only GPUs store gradients in a type that needs a scaled loss.
#include "trireme/backend/onednn/kernels.hpp"
#include "trireme/backend/reference/kernels.hpp"

namespace trireme::onednn {

KernelChoice make(const op::UnscaledRates& operation, const KernelRequest& request, const dnnl::engine&) {
  return reference::make(operation, request);
}

KernelChoice make(const op::UpdateLossScale& operation, const KernelRequest& request, const dnnl::engine&) {
  return reference::make(operation, request);
}

}  // namespace trireme::onednn
