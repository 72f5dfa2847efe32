#include "trireme/backend/onednn/pointwise_choice.hpp"

#include "trireme/backend/onednn/pointwise.hpp"

namespace trireme::onednn {
namespace {

constexpr const char* kImplementation = "own_1x1:avx512";

bool possible(const op::Window& window, std::int64_t groups, const OwnLayouts& layouts) {
  constexpr op::Pair kOne{1, 1}, kNone{0, 0};
  return blocked_possible(groups, layouts) && window.kernel == kOne && window.pad_before == kNone &&
         window.pad_after == kNone;
}

}  // namespace

std::optional<KernelChoice> pointwise_choice(const op::Convolution& operation, const KernelRequest& request,
                                             const OwnLayouts& layouts) {
  if (!possible(operation.window, operation.groups, layouts)) return std::nullopt;
  return blocked_choice(kImplementation, operation, request, layouts, [&](const BlockedProblem& problem, int threads) {
    return pointwise::Product(problem, {.src = operation.window.stride}, threads);
  });
}

std::optional<KernelChoice> pointwise_choice(const op::ConvolutionBackwardData& operation, const KernelRequest& request,
                                             const OwnLayouts& layouts) {
  if (!possible(operation.window, operation.groups, layouts)) return std::nullopt;
  return blocked_choice(kImplementation, operation, request, layouts, [&](const BlockedProblem& problem, int threads) {
    return pointwise::Product(problem, {.dst = operation.window.stride}, threads);
  });
}

std::optional<KernelChoice> pointwise_choice(const op::ConvolutionBackwardWeights& operation,
                                             const KernelRequest& request, const OwnLayouts& layouts) {
  if (!possible(operation.window, operation.groups, layouts)) return std::nullopt;
  return blocked_choice(kImplementation, operation, request, layouts, [&](const BlockedProblem& problem, int threads) {
    return pointwise::WeightsGradient(problem, operation.window.stride, threads);
  });
}

}  // namespace trireme::onednn
