// Builds graphs in mathematical notation: one function per operation, and operators on tensors. For layers with
// variables (conv + bias + initial values) see models/layers.hpp.
#pragma once

#include "trireme/graph/graph.hpp"

namespace trireme {

Tensor placeholder(Graph& graph, Shape shape, std::string name = "", DataType dtype = DataType::f32);
Tensor variable(Graph& graph, Shape shape, op::Initializer initializer, std::string name = "", bool trainable = true);
Tensor constant(Graph& graph, HostTensor value, std::string name = "");

// The weights determine the kernel's extents.
Tensor convolution(Tensor src, Tensor weights, op::Window window = {}, std::int64_t groups = 1, std::string name = "");
Tensor convolution_bias(Tensor src, Tensor weights, Tensor bias, op::Window window = {}, std::int64_t groups = 1,
                        std::string name = "");
Tensor max_pool(Tensor src, op::Window window, std::string name = "");
Tensor average_pool(Tensor src, op::Window window, bool include_padding = false, std::string name = "");
Tensor fully_connected(Tensor src, Tensor weights, std::string name = "");
Tensor fully_connected_bias(Tensor src, Tensor weights, Tensor bias, std::string name = "");
Tensor matmul(Tensor a, Tensor b, bool transpose_a = false, bool transpose_b = false, std::string name = "");
Tensor add_bias(Tensor src, Tensor bias, std::string name = "");

Tensor lrn(Tensor src, op::Lrn parameters = {}, std::string name = "");
Tensor unary(op::UnaryKind kind, Tensor src, float alpha = 0, std::string name = "");
Tensor relu(Tensor src, std::string name = "");
Tensor square(Tensor src, std::string name = "");
Tensor clip(Tensor src, float low, float high, std::string name = "");  // the gradient is 0 outside and at both ends
Tensor affine(Tensor src, float scale, float offset, std::string name = "");  // scale * src + offset
Tensor relu6(Tensor src, std::string name = "");                              // clip(src, 0, 6)
Tensor hard_sigmoid(Tensor src, std::string name = "");                       // clip(src / 6 + 0.5, 0, 1)
Tensor hard_swish(Tensor src, std::string name = "");                         // src * hard_sigmoid(src)
Tensor binary(op::BinaryKind kind, Tensor a, Tensor b, std::string name = "");
Tensor operator+(Tensor a, Tensor b);
Tensor operator-(Tensor a, Tensor b);
Tensor operator*(Tensor a, Tensor b);
Tensor operator/(Tensor a, Tensor b);
Tensor operator+(Tensor a, float b);
Tensor operator-(Tensor a, float b);
Tensor operator*(Tensor a, float b);
Tensor operator/(Tensor a, float b);
Tensor operator+(float a, Tensor b);
Tensor operator-(float a, Tensor b);
Tensor operator*(float a, Tensor b);
Tensor dropout(Tensor src, float rate, std::string name = "");

Tensor concat(std::vector<Tensor> inputs, int axis = 1, std::string name = "");
std::vector<Tensor> split(Tensor src, std::vector<std::int64_t> sizes, int axis = 1, std::string name = "");
Tensor pad(Tensor src, std::vector<std::int64_t> before, std::vector<std::int64_t> after, float value = 0,
           std::string name = "");
Tensor slice(Tensor src, std::vector<std::int64_t> begin, std::vector<std::int64_t> size, std::string name = "");
Tensor reshape(Tensor src, Shape shape, std::string name = "");
Tensor flatten(Tensor src, std::string name = "");  // batch x the rest

Tensor reduce(op::ReduceKind kind, Tensor src, std::vector<int> axes = {}, bool keep_dims = false,
              std::string name = "");
Tensor reduce_sum(Tensor src, std::vector<int> axes = {}, bool keep_dims = false, std::string name = "");
Tensor reduce_mean(Tensor src, std::vector<int> axes = {}, bool keep_dims = false, std::string name = "");
Tensor l2_loss(Tensor src, float scale = 1, std::string name = "");
Tensor softmax(Tensor src, std::string name = "");
// The mean over the batch, a scalar.
Tensor softmax_cross_entropy(Tensor logits, Tensor labels, float label_smoothing = 0, std::string name = "");
Tensor top_k_accuracy(Tensor logits, Tensor labels, std::int64_t k = 1, std::string name = "");

}  // namespace trireme
