// The oneDNN backend's factories: one overload per operation. Those with several kernels to choose from get the tuner.
#pragma once

#include <oneapi/dnnl/dnnl.hpp>
#include <optional>
#include <vector>

#include "trireme/backend/tuner.hpp"
#include "trireme/plan/backend.hpp"

namespace trireme::onednn {

// convolution.cpp
KernelChoice make(const op::Convolution& operation, const KernelRequest& request, const dnnl::engine& engine,
                  const Tuner& tuner);
KernelChoice make(const op::ConvolutionBackwardData& operation, const KernelRequest& request,
                  const dnnl::engine& engine, const Tuner& tuner);
KernelChoice make(const op::ConvolutionBackwardWeights& operation, const KernelRequest& request,
                  const dnnl::engine& engine, const Tuner& tuner);

// pooling.cpp
KernelChoice make(const op::Pool& operation, const KernelRequest& request, const dnnl::engine& engine);
KernelChoice make(const op::PoolBackward& operation, const KernelRequest& request, const dnnl::engine& engine);

// Layouts of the convolution's other kernels. Activations must have these, to compare; weights the first possible one.
struct OwnLayouts {
  Layout src, dst;
  std::vector<Layout> weights;
};

// winograd_forward.cpp, winograd_gradient.cpp: own convolution by F(4x4, 3x3) for AVX-512. Transformed values stay in
// the cache, while the library's is bound by memory. convolution.cpp offers it to the tuner; it rounds more than the
// direct sum.
namespace winograd {
inline constexpr const char* kImplementation = "own_wino_4x3:avx512";

bool possible(const op::Window& window, std::int64_t groups, const OwnLayouts& layouts);

KernelChoice choice(const op::Convolution& operation, const KernelRequest& request, const OwnLayouts& layouts);
KernelChoice choice(const op::ConvolutionBackwardData& operation, const KernelRequest& request,
                    const OwnLayouts& layouts);
KernelChoice choice(const op::ConvolutionBackwardWeights& operation, const KernelRequest& request,
                    const OwnLayouts& layouts);
}  // namespace winograd

// linear.cpp
KernelChoice make(const op::FullyConnected& operation, const KernelRequest& request, const dnnl::engine& engine,
                  const Tuner& tuner);
KernelChoice make(const op::FullyConnectedBackwardData& operation, const KernelRequest& request,
                  const dnnl::engine& engine, const Tuner& tuner);
KernelChoice make(const op::FullyConnectedBackwardWeights& operation, const KernelRequest& request,
                  const dnnl::engine& engine, const Tuner& tuner);
KernelChoice make(const op::MatMul& operation, const KernelRequest& request, const dnnl::engine& engine);
KernelChoice make(const op::Bias& operation, const KernelRequest& request, const dnnl::engine& engine);
KernelChoice make(const op::BiasBackward& operation, const KernelRequest& request, const dnnl::engine& engine);

// How rows of src and weights lie in memory: the same order for both, axis 0 outermost.
struct LinearLayouts {
  Layout src, weights;
};

// linear_own.cpp: own kernels for small batches, for AVX-512 or AVX2, that linear.cpp offers to the tuner. Nothing if
// not applicable: other layouts, rows that are not whole vectors, larger batches, other CPUs.
std::optional<KernelChoice> own_linear(const op::FullyConnected& operation, const KernelRequest& request,
                                       const LinearLayouts& layouts);
std::optional<KernelChoice> own_linear(const op::FullyConnectedBackwardData& operation, const KernelRequest& request,
                                       const LinearLayouts& layouts);
std::optional<KernelChoice> own_linear(const op::FullyConnectedBackwardWeights& operation, const KernelRequest& request,
                                       const LinearLayouts& layouts);

// normalization.cpp
KernelChoice make(const op::BatchNorm& operation, const KernelRequest& request, const dnnl::engine& engine);
KernelChoice make(const op::BatchNormBackward& operation, const KernelRequest& request, const dnnl::engine& engine);
KernelChoice make(const op::BatchNormInference& operation, const KernelRequest& request, const dnnl::engine& engine);
KernelChoice make(const op::Lrn& operation, const KernelRequest& request, const dnnl::engine& engine);
KernelChoice make(const op::LrnBackward& operation, const KernelRequest& request, const dnnl::engine& engine);

// elementwise.cpp
KernelChoice make(const op::Unary& operation, const KernelRequest& request, const dnnl::engine& engine);
KernelChoice make(const op::UnaryBackward& operation, const KernelRequest& request, const dnnl::engine& engine);
KernelChoice make(const op::Binary& operation, const KernelRequest& request, const dnnl::engine& engine);
KernelChoice make(const op::Dropout& operation, const KernelRequest& request, const dnnl::engine& engine);
KernelChoice make(const op::Broadcast& operation, const KernelRequest& request, const dnnl::engine& engine);

// structure.cpp
KernelChoice make(const op::Concat& operation, const KernelRequest& request, const dnnl::engine& engine);
KernelChoice make(const op::Split& operation, const KernelRequest& request, const dnnl::engine& engine);
KernelChoice make(const op::Pad& operation, const KernelRequest& request, const dnnl::engine& engine);
KernelChoice make(const op::Slice& operation, const KernelRequest& request, const dnnl::engine& engine);
KernelChoice make(const op::Reshape& operation, const KernelRequest& request, const dnnl::engine& engine);

// reduction.cpp
KernelChoice make(const op::Reduce& operation, const KernelRequest& request, const dnnl::engine& engine);
KernelChoice make(const op::L2Loss& operation, const KernelRequest& request, const dnnl::engine& engine);

// loss.cpp
KernelChoice make(const op::Softmax& operation, const KernelRequest& request, const dnnl::engine& engine);
KernelChoice make(const op::SoftmaxBackward& operation, const KernelRequest& request, const dnnl::engine& engine);
KernelChoice make(const op::SoftmaxCrossEntropy& operation, const KernelRequest& request, const dnnl::engine& engine);
KernelChoice make(const op::SoftmaxCrossEntropyBackward& operation, const KernelRequest& request,
                  const dnnl::engine& engine);
KernelChoice make(const op::TopKAccuracy& operation, const KernelRequest& request, const dnnl::engine& engine);

// update.cpp
KernelChoice make(const op::ApplyGradients& operation, const KernelRequest& request, const dnnl::engine& engine);
KernelChoice make(const op::MovingAverage& operation, const KernelRequest& request, const dnnl::engine& engine);
KernelChoice make(const op::Assign& operation, const KernelRequest& request, const dnnl::engine& engine);
KernelChoice make(const op::UnscaledRates& operation, const KernelRequest& request, const dnnl::engine& engine);
KernelChoice make(const op::UpdateLossScale& operation, const KernelRequest& request, const dnnl::engine& engine);

// reorder.cpp
KernelChoice make_reorder(const TensorDesc& from, const Format& to, const dnnl::engine& engine);
// Wraps a kernel that uses other formats: reorders its inputs into scratch memory first and its outputs afterwards, so
// that it can be timed, reorders included, against kernels that need none. inputs, outputs: the result's formats.
KernelChoice with_reorders(KernelChoice inner, const KernelRequest& request, const std::vector<Format>& inputs,
                           const std::vector<Format>& outputs, const dnnl::engine& engine);

}  // namespace trireme::onednn
