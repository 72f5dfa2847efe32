// The CUDA backend's factories: one overload per operation. Those with several kernels to choose from get the tuner.
#pragma once

#include <array>
#include <functional>

#include "trireme/backend/cuda/device.hpp"
#include "trireme/backend/tuner.hpp"

namespace trireme::cuda {

constexpr const char* kImplementation = "own:cuda";  // the name of own kernels in plans and profiles

// convolution.cpp
KernelChoice make(const op::Convolution& operation, const KernelRequest& request, CudaDevice& device,
                  const Tuner& tuner);
KernelChoice make(const op::ConvolutionBackwardData& operation, const KernelRequest& request, CudaDevice& device,
                  const Tuner& tuner);
KernelChoice make(const op::ConvolutionBackwardWeights& operation, const KernelRequest& request, CudaDevice& device,
                  const Tuner& tuner);

// pooling.cu
KernelChoice make(const op::Pool& operation, const KernelRequest& request, CudaDevice& device);
KernelChoice make(const op::PoolBackward& operation, const KernelRequest& request, CudaDevice& device);

// linear.cpp
KernelChoice make(const op::FullyConnected& operation, const KernelRequest& request, CudaDevice& device,
                  const Tuner& tuner);
KernelChoice make(const op::FullyConnectedBackwardData& operation, const KernelRequest& request, CudaDevice& device,
                  const Tuner& tuner);
KernelChoice make(const op::FullyConnectedBackwardWeights& operation, const KernelRequest& request, CudaDevice& device,
                  const Tuner& tuner);
KernelChoice make(const op::MatMul& operation, const KernelRequest& request, CudaDevice& device, const Tuner& tuner);
KernelChoice make(const op::Bias& operation, const KernelRequest& request, CudaDevice& device);
KernelChoice make(const op::BiasBackward& operation, const KernelRequest& request, CudaDevice& device);

// batch_norm_forward.cu, batch_norm_backward.cu
KernelChoice make(const op::BatchNorm& operation, const KernelRequest& request, CudaDevice& device);
KernelChoice make(const op::BatchNormBackward& operation, const KernelRequest& request, CudaDevice& device);
KernelChoice make(const op::BatchNormInference& operation, const KernelRequest& request, CudaDevice& device);

// lrn.cu
KernelChoice make(const op::Lrn& operation, const KernelRequest& request, CudaDevice& device);
KernelChoice make(const op::LrnBackward& operation, const KernelRequest& request, CudaDevice& device);

// elementwise.cu
KernelChoice make(const op::Unary& operation, const KernelRequest& request, CudaDevice& device);
KernelChoice make(const op::UnaryBackward& operation, const KernelRequest& request, CudaDevice& device);
KernelChoice make(const op::Binary& operation, const KernelRequest& request, CudaDevice& device);
KernelChoice make(const op::Dropout& operation, const KernelRequest& request, CudaDevice& device);
KernelChoice make(const op::Broadcast& operation, const KernelRequest& request, CudaDevice& device);

// structure.cu
KernelChoice make(const op::Concat& operation, const KernelRequest& request, CudaDevice& device);
KernelChoice make(const op::Split& operation, const KernelRequest& request, CudaDevice& device);
KernelChoice make(const op::Pad& operation, const KernelRequest& request, CudaDevice& device);
KernelChoice make(const op::Slice& operation, const KernelRequest& request, CudaDevice& device);
KernelChoice make(const op::Reshape& operation, const KernelRequest& request, CudaDevice& device);

// reduction.cu
KernelChoice make(const op::Reduce& operation, const KernelRequest& request, CudaDevice& device);
KernelChoice make(const op::L2Loss& operation, const KernelRequest& request, CudaDevice& device);

// loss.cu
KernelChoice make(const op::Softmax& operation, const KernelRequest& request, CudaDevice& device);
KernelChoice make(const op::SoftmaxBackward& operation, const KernelRequest& request, CudaDevice& device);
KernelChoice make(const op::SoftmaxCrossEntropy& operation, const KernelRequest& request, CudaDevice& device);
KernelChoice make(const op::SoftmaxCrossEntropyBackward& operation, const KernelRequest& request, CudaDevice& device);
KernelChoice make(const op::TopKAccuracy& operation, const KernelRequest& request, CudaDevice& device);

// update.cu
KernelChoice make(const op::ApplyGradients& operation, const KernelRequest& request, CudaDevice& device);
KernelChoice make(const op::MovingAverage& operation, const KernelRequest& request, CudaDevice& device);
KernelChoice make(const op::Assign& operation, const KernelRequest& request, CudaDevice& device);
KernelChoice make(const op::UnscaledRates& operation, const KernelRequest& request, CudaDevice& device);
KernelChoice make(const op::UpdateLossScale& operation, const KernelRequest& request, CudaDevice& device);

// reorder.cu
KernelChoice make_reorder(const TensorDesc& from, const Format& to, CudaDevice& device);

// Copies between any two formats: to[i] = from[i - shift] if that is inside from, else 0. Error(bad_input) if there are
// too many axes or blocks.
using CopyFunction = std::function<void(const void* from, void* to)>;
CopyFunction any_reorder(const TensorDesc& from, const TensorDesc& to, CudaDevice& device,
                         const std::array<std::int64_t, 4>& shift = {});
// box_copy.cu: the same, faster, for tensors of rank 4 in layouts without blocks.
CopyFunction box_copy(const TensorDesc& from, const TensorDesc& to, CudaDevice& device,
                      const std::array<std::int64_t, 4>& shift);

}  // namespace trireme::cuda
