// The reference backend's factories: one overload per operation, defined in the file of its family.
#pragma once

#include "trireme/plan/backend.hpp"

namespace trireme::reference {

// convolution.cpp
KernelChoice make(const op::Convolution& operation, const KernelRequest& request);
KernelChoice make(const op::ConvolutionBackwardData& operation, const KernelRequest& request);
KernelChoice make(const op::ConvolutionBackwardWeights& operation, const KernelRequest& request);

// pooling.cpp
KernelChoice make(const op::Pool& operation, const KernelRequest& request);
KernelChoice make(const op::PoolBackward& operation, const KernelRequest& request);

// linear.cpp
KernelChoice make(const op::FullyConnected& operation, const KernelRequest& request);
KernelChoice make(const op::FullyConnectedBackwardData& operation, const KernelRequest& request);
KernelChoice make(const op::FullyConnectedBackwardWeights& operation, const KernelRequest& request);
KernelChoice make(const op::MatMul& operation, const KernelRequest& request);
KernelChoice make(const op::Bias& operation, const KernelRequest& request);
KernelChoice make(const op::BiasBackward& operation, const KernelRequest& request);

// normalization.cpp
KernelChoice make(const op::BatchNorm& operation, const KernelRequest& request);
KernelChoice make(const op::BatchNormBackward& operation, const KernelRequest& request);
KernelChoice make(const op::BatchNormInference& operation, const KernelRequest& request);
KernelChoice make(const op::Lrn& operation, const KernelRequest& request);
KernelChoice make(const op::LrnBackward& operation, const KernelRequest& request);

// elementwise.cpp
KernelChoice make(const op::Unary& operation, const KernelRequest& request);
KernelChoice make(const op::UnaryBackward& operation, const KernelRequest& request);
KernelChoice make(const op::Binary& operation, const KernelRequest& request);
KernelChoice make(const op::Dropout& operation, const KernelRequest& request);
KernelChoice make(const op::Broadcast& operation, const KernelRequest& request);

// structure.cpp
KernelChoice make(const op::Concat& operation, const KernelRequest& request);
KernelChoice make(const op::Split& operation, const KernelRequest& request);
KernelChoice make(const op::Pad& operation, const KernelRequest& request);
KernelChoice make(const op::Slice& operation, const KernelRequest& request);
KernelChoice make(const op::Reshape& operation, const KernelRequest& request);

// reduction.cpp
KernelChoice make(const op::Reduce& operation, const KernelRequest& request);
KernelChoice make(const op::L2Loss& operation, const KernelRequest& request);

// loss.cpp
KernelChoice make(const op::Softmax& operation, const KernelRequest& request);
KernelChoice make(const op::SoftmaxBackward& operation, const KernelRequest& request);
KernelChoice make(const op::SoftmaxCrossEntropy& operation, const KernelRequest& request);
KernelChoice make(const op::SoftmaxCrossEntropyBackward& operation, const KernelRequest& request);
KernelChoice make(const op::TopKAccuracy& operation, const KernelRequest& request);

// update.cpp
KernelChoice make(const op::ApplyGradients& operation, const KernelRequest& request);
KernelChoice make(const op::MovingAverage& operation, const KernelRequest& request);
KernelChoice make(const op::Assign& operation, const KernelRequest& request);
KernelChoice make(const op::UnscaledRates& operation, const KernelRequest& request);
KernelChoice make(const op::UpdateLossScale& operation, const KernelRequest& request);

// reorder.cpp
KernelChoice make_reorder(const TensorDesc& from, const Format& to);

}  // namespace trireme::reference
