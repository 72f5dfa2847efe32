#include "trireme/graph/functions.hpp"

#include <algorithm>
#include <utility>

#include "trireme/base/error.hpp"

namespace trireme {
namespace {

Graph& graph_of(Tensor tensor) {
  if (!tensor || tensor.graph == nullptr) bad_input("an empty tensor was used; expected the output of a node");
  return *tensor.graph;
}

std::string name_or(std::string name, std::string_view otherwise) {
  return name.empty() ? std::string(otherwise) : name;
}

// Shape inference reports other ranks.
void take_kernel(op::Window& window, const Shape& weights) {
  if (weights.rank() == 4) window.kernel = {weights[2], weights[3]};
}

}  // namespace

Tensor placeholder(Graph& graph, Shape shape, std::string name, DataType dtype) {
  return graph.add(op::Placeholder{{dtype, std::move(shape)}}, {}, std::move(name));
}

Tensor variable(Graph& graph, Shape shape, op::Initializer initializer, std::string name, bool trainable) {
  return graph.add(op::Variable{std::move(shape), initializer, trainable}, {}, std::move(name));
}

Tensor constant(Graph& graph, HostTensor value, std::string name) {
  return graph.add(op::Constant{std::move(value)}, {}, std::move(name));
}

Tensor convolution(Tensor src, Tensor weights, op::Window window, std::int64_t groups, std::string name) {
  take_kernel(window, weights.shape());
  return graph_of(src).add(op::Convolution{.window = window, .groups = groups}, {src, weights}, std::move(name));
}

Tensor convolution_bias(Tensor src, Tensor weights, Tensor bias, op::Window window, std::int64_t groups,
                        std::string name) {
  take_kernel(window, weights.shape());
  return graph_of(src).add(op::Convolution{.window = window, .groups = groups, .bias = true}, {src, weights, bias},
                           std::move(name));
}

Tensor max_pool(Tensor src, op::Window window, std::string name) {
  return graph_of(src).add(op::Pool{op::PoolKind::max, window}, {src}, name_or(std::move(name), "max_pool"));
}

Tensor average_pool(Tensor src, op::Window window, bool include_padding, std::string name) {
  const auto kind = include_padding ? op::PoolKind::average_include_padding : op::PoolKind::average_inside;
  return graph_of(src).add(op::Pool{kind, window}, {src}, name_or(std::move(name), "average_pool"));
}

Tensor fully_connected(Tensor src, Tensor weights, std::string name) {
  return graph_of(src).add(op::FullyConnected{}, {src, weights}, std::move(name));
}

Tensor fully_connected_bias(Tensor src, Tensor weights, Tensor bias, std::string name) {
  return graph_of(src).add(op::FullyConnected{.bias = true}, {src, weights, bias}, std::move(name));
}

Tensor matmul(Tensor a, Tensor b, bool transpose_a, bool transpose_b, std::string name) {
  return graph_of(a).add(op::MatMul{transpose_a, transpose_b}, {a, b}, std::move(name));
}

Tensor add_bias(Tensor src, Tensor bias, std::string name) {
  return graph_of(src).add(op::Bias{}, {src, bias}, std::move(name));
}

Tensor lrn(Tensor src, op::Lrn parameters, std::string name) {
  return graph_of(src).add(parameters, {src}, std::move(name));
}

Tensor unary(op::UnaryKind kind, Tensor src, float alpha, std::string name) {
  return graph_of(src).add(op::Unary{kind, alpha}, {src}, name_or(std::move(name), to_string(kind)));
}

Tensor relu(Tensor src, std::string name) { return unary(op::UnaryKind::relu, src, 0, std::move(name)); }
Tensor square(Tensor src, std::string name) { return unary(op::UnaryKind::square, src, 0, std::move(name)); }

Tensor clip(Tensor src, float low, float high, std::string name) {
  return graph_of(src).add(op::Unary{op::UnaryKind::clip, low, high}, {src}, name_or(std::move(name), "clip"));
}

Tensor affine(Tensor src, float scale, float offset, std::string name) {
  return graph_of(src).add(op::Unary{op::UnaryKind::affine, scale, offset}, {src}, name_or(std::move(name), "affine"));
}

Tensor relu6(Tensor src, std::string name) { return clip(src, 0, 6, name_or(std::move(name), "relu6")); }

Tensor hard_sigmoid(Tensor src, std::string name) {
  return clip(affine(src, 1.0f / 6, 0.5f), 0, 1, name_or(std::move(name), "hard_sigmoid"));
}

Tensor hard_swish(Tensor src, std::string name) {
  return binary(op::BinaryKind::multiply, src, hard_sigmoid(src), name_or(std::move(name), "hard_swish"));
}

Tensor binary(op::BinaryKind kind, Tensor a, Tensor b, std::string name) {
  return graph_of(a).add(op::Binary{.kind = kind}, {a, b}, name_or(std::move(name), to_string(kind)));
}

Tensor operator+(Tensor a, Tensor b) { return binary(op::BinaryKind::add, a, b); }
Tensor operator-(Tensor a, Tensor b) { return binary(op::BinaryKind::subtract, a, b); }
Tensor operator*(Tensor a, Tensor b) { return binary(op::BinaryKind::multiply, a, b); }
Tensor operator/(Tensor a, Tensor b) { return binary(op::BinaryKind::divide, a, b); }
Tensor operator+(Tensor a, float b) { return affine(a, 1, b); }
Tensor operator-(Tensor a, float b) { return affine(a, 1, -b); }
Tensor operator*(Tensor a, float b) { return affine(a, b, 0); }
Tensor operator/(Tensor a, float b) { return affine(a, 1 / b, 0); }
Tensor operator+(float a, Tensor b) { return affine(b, 1, a); }
Tensor operator-(float a, Tensor b) { return affine(b, -1, a); }
Tensor operator*(float a, Tensor b) { return affine(b, a, 0); }

Tensor dropout(Tensor src, float rate, std::string name) {
  return graph_of(src).add(op::Dropout{.rate = rate}, {src}, std::move(name));
}

Tensor concat(std::vector<Tensor> inputs, int axis, std::string name) {
  if (inputs.empty()) bad_input("concat: expected one or more inputs, got none");
  Graph& graph = graph_of(inputs.front());
  return graph.add(op::Concat{axis}, std::move(inputs), std::move(name));
}

std::vector<Tensor> split(Tensor src, std::vector<std::int64_t> sizes, int axis, std::string name) {
  Graph& graph = graph_of(src);
  const auto parts = static_cast<int>(sizes.size());
  const Tensor first = graph.add(op::Split{axis, std::move(sizes)}, {src}, std::move(name));
  std::vector<Tensor> outputs;
  for (int i = 0; i < parts; ++i) outputs.push_back(graph.output(first.node, i));
  return outputs;
}

Tensor pad(Tensor src, std::vector<std::int64_t> before, std::vector<std::int64_t> after, float value,
           std::string name) {
  return graph_of(src).add(op::Pad{std::move(before), std::move(after), value}, {src}, std::move(name));
}

Tensor slice(Tensor src, std::vector<std::int64_t> begin, std::vector<std::int64_t> size, std::string name) {
  return graph_of(src).add(op::Slice{std::move(begin), std::move(size)}, {src}, std::move(name));
}

Tensor reshape(Tensor src, Shape shape, std::string name) {
  return graph_of(src).add(op::Reshape{std::move(shape)}, {src}, std::move(name));
}

Tensor flatten(Tensor src, std::string name) {
  const Shape& shape = src.shape();
  if (shape.rank() == 0) bad_input("flatten: src is a scalar, expected the batch as axis 0");
  return reshape(src, {shape[0], shape.elements() / shape[0]}, name_or(std::move(name), "flatten"));
}

Tensor reduce(op::ReduceKind kind, Tensor src, std::vector<int> axes, bool keep_dims, std::string name) {
  std::sort(axes.begin(), axes.end());
  return graph_of(src).add(op::Reduce{kind, std::move(axes), keep_dims}, {src},
                           name_or(std::move(name), fmt::format("reduce_{}", to_string(kind))));
}

Tensor reduce_sum(Tensor src, std::vector<int> axes, bool keep_dims, std::string name) {
  return reduce(op::ReduceKind::sum, src, std::move(axes), keep_dims, std::move(name));
}

Tensor reduce_mean(Tensor src, std::vector<int> axes, bool keep_dims, std::string name) {
  return reduce(op::ReduceKind::mean, src, std::move(axes), keep_dims, std::move(name));
}

Tensor l2_loss(Tensor src, float scale, std::string name) {
  return graph_of(src).add(op::L2Loss{scale}, {src}, std::move(name));
}

Tensor softmax(Tensor src, std::string name) { return graph_of(src).add(op::Softmax{}, {src}, std::move(name)); }

Tensor softmax_cross_entropy(Tensor logits, Tensor labels, float label_smoothing, std::string name) {
  name = name_or(std::move(name), "softmax_cross_entropy");
  const Tensor losses =
      graph_of(logits).add(op::SoftmaxCrossEntropy{label_smoothing}, {logits, labels}, name + "/per_sample");
  return reduce_mean(losses, {}, false, std::move(name));
}

Tensor top_k_accuracy(Tensor logits, Tensor labels, std::int64_t k, std::string name) {
  return graph_of(logits).add(op::TopKAccuracy{k}, {logits, labels}, std::move(name));
}

}  // namespace trireme
