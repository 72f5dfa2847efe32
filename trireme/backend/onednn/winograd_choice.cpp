#include "trireme/backend/onednn/winograd_choice.hpp"

#include "trireme/backend/onednn/winograd.hpp"
#include "trireme/backend/onednn/winograd_gradient.hpp"

namespace trireme::onednn {
namespace {

constexpr const char* kImplementation = "own_wino_4x3:avx512";

bool possible(const op::Window& window, std::int64_t groups, const OwnLayouts& layouts) {
  constexpr op::Pair kThree{3, 3}, kOne{1, 1};
  const auto padded = [](const op::Pair& pad) { return pad[0] <= 2 && pad[1] <= 2; };
  return blocked_possible(groups, layouts) && window.kernel == kThree && window.stride == kOne &&
         window.dilation == kOne && padded(window.pad_before) && padded(window.pad_after);
}

}  // namespace

std::optional<KernelChoice> winograd_choice(const op::Convolution& operation, const KernelRequest& request,
                                            const OwnLayouts& layouts) {
  if (!possible(operation.window, operation.groups, layouts)) return std::nullopt;
  return blocked_choice(kImplementation, operation, request, layouts, [&](const BlockedProblem& problem, int threads) {
    return winograd::Forward(problem, operation.window.pad_before, threads);
  });
}

std::optional<KernelChoice> winograd_choice(const op::ConvolutionBackwardData& operation, const KernelRequest& request,
                                            const OwnLayouts& layouts) {
  if (!possible(operation.window, operation.groups, layouts)) return std::nullopt;
  // The same sum with the roles of the activations changed: a value of diff_src depends on the 3x3 values of diff_dst
  // that it went into.
  const op::Pair pad{2 - operation.window.pad_before[0], 2 - operation.window.pad_before[1]};
  return blocked_choice(kImplementation, operation, request, layouts, [&](const BlockedProblem& problem, int threads) {
    return winograd::Forward(problem, pad, threads);
  });
}

std::optional<KernelChoice> winograd_choice(const op::ConvolutionBackwardWeights& operation,
                                            const KernelRequest& request, const OwnLayouts& layouts) {
  if (!possible(operation.window, operation.groups, layouts)) return std::nullopt;
  return blocked_choice(kImplementation, operation, request, layouts, [&](const BlockedProblem& problem, int threads) {
    return winograd::WeightsGradient(problem, operation.window.pad_before, threads);
  });
}

}  // namespace trireme::onednn
