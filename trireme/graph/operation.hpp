// All operations as one variant, with functions over it. To add one: docs/adding-an-operation.md.
#pragma once

#include <string_view>
#include <variant>

#include "trireme/graph/ops/convolution.hpp"
#include "trireme/graph/ops/elementwise.hpp"
#include "trireme/graph/ops/linear.hpp"
#include "trireme/graph/ops/loss.hpp"
#include "trireme/graph/ops/normalization.hpp"
#include "trireme/graph/ops/pooling.hpp"
#include "trireme/graph/ops/reduction.hpp"
#include "trireme/graph/ops/sources.hpp"
#include "trireme/graph/ops/structure.hpp"
#include "trireme/graph/ops/update.hpp"

namespace trireme {

// One line per family, two if it is long.
// clang-format off
using Operation = std::variant<
    op::Placeholder, op::Variable, op::Constant,
    op::Convolution, op::ConvolutionBackwardData, op::ConvolutionBackwardWeights,
    op::Pool, op::PoolBackward,
    op::FullyConnected, op::FullyConnectedBackwardData, op::FullyConnectedBackwardWeights,
    op::MatMul, op::Bias, op::BiasBackward,
    op::BatchNorm, op::BatchNormBackward, op::BatchNormInference, op::Lrn, op::LrnBackward,
    op::Unary, op::UnaryBackward, op::Binary, op::Dropout, op::Broadcast,
    op::Concat, op::Split, op::Pad, op::Slice, op::Reshape,
    op::Reduce, op::L2Loss,
    op::Softmax, op::SoftmaxBackward, op::SoftmaxCrossEntropy, op::SoftmaxCrossEntropyBackward, op::TopKAccuracy,
    op::ApplyGradients, op::MovingAverage, op::Assign, op::UnscaledRates, op::UpdateLossScale>;
// clang-format on

std::string_view name_of(const Operation& operation);
// For display, with everything fused into it: "convolution+bias+relu", "max_pool".
std::string label_of(const Operation& operation);
std::vector<TensorType> infer(const Operation& operation, Types inputs);
Cost cost(const Operation& operation, Types inputs, Types outputs);
// Error(bad_input) if the operation has no gradient.
std::vector<Tensor> gradient(const Operation& operation, const GradientArgs& args);

// Whether it computes a gradient (kBackward); a graph with such an operation is for training.
bool is_backward(const Operation& operation);
// Whether it writes a variable; such nodes have no output and are fetched for their effect.
bool is_update(const Operation& operation);
// Positions of the inputs that an update writes; each must be a variable. Empty for other operations.
std::vector<int> written_inputs(const Operation& operation, int input_count);

}  // namespace trireme
