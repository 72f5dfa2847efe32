#include "trireme/graph/graph.hpp"

#include <utility>

#include "trireme/base/error.hpp"
#include "trireme/base/random.hpp"

namespace trireme {
namespace {

std::string join_shapes(std::span<const TensorType> types) {
  std::string text;
  for (const TensorType& type : types) {
    text += text.empty() ? "" : ", ";
    text += to_string(type.shape);
    if (type.dtype != DataType::f32) text += fmt::format(" {}", to_string(type.dtype));
  }
  return text;
}

std::string describe(const std::string& name, const Operation& op, std::span<const TensorType> types) {
  return types.empty() ? fmt::format("node '{}' ({})", name, name_of(op))
                       : fmt::format("node '{}' ({}, inputs {})", name, name_of(op), join_shapes(types));
}

void expect_variables(const Graph& graph, const Operation& op, const std::vector<Tensor>& inputs) {
  for (const int i : written_inputs(op, static_cast<int>(inputs.size()))) {
    const Node& written = graph.node(inputs[i]);
    if (written.as<op::Variable>() == nullptr) {
      bad_input("input {} is '{}' ({}), expected a variable: an update can only write to variables", i, written.name,
                name_of(written.op));
    }
  }
}

}  // namespace

const TensorType& Tensor::type() const {
  if (graph == nullptr || node < 0) bad_input("an empty tensor was used; expected the output of a node");
  const Node& producer = graph->node(node);
  if (output < 0 || static_cast<std::size_t>(output) >= producer.outputs.size()) {
    bad_input("node '{}' ({}) has no output {}; it has {}{}", producer.name, name_of(producer.op), output,
              producer.outputs.size(), is_update(producer.op) ? ": an update can only be fetched" : "");
  }
  return producer.outputs[output];
}

Tensor Graph::add(Operation op, std::vector<Tensor> inputs, std::string name) {
  std::string wanted = prefix_ + (name.empty() ? std::string(name_of(op)) : std::move(name));
  std::vector<TensorType> types;
  std::vector<TensorType> outputs;
  try {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i] && inputs[i].graph != this) bad_input("input {} belongs to another graph", i);
      types.push_back(inputs[i].type());
    }
    outputs = infer(op, types);
    expect_variables(*this, op, inputs);
  } catch (const Error& error) {
    throw Error(error.kind(), describe(wanted, op, types) + ": " + error.what());
  }

  const auto id = static_cast<NodeId>(nodes_.size());
  Node node{id, unique_name(std::move(wanted)), std::move(op), std::move(inputs), std::move(outputs)};
  if (auto* dropout = std::get_if<op::Dropout>(&node.op); dropout != nullptr && dropout->key == 0) {
    dropout->key = random_key(0, node.name);
  }
  if (auto* variable = std::get_if<op::Variable>(&node.op)) {
    variable->device = merge(device_, variable->device);
    variables_.push_back(id);
  }
  nodes_.push_back(std::move(node));
  return output(id);
}

Cost cost(const Node& node) {
  std::vector<TensorType> inputs;
  for (const Tensor& input : node.inputs) inputs.push_back(input.type());
  return cost(node.op, inputs, node.outputs);
}

std::vector<bool> needed_for(std::span<const Tensor> tensors, const Graph& graph) {
  std::vector<bool> needed(graph.nodes().size(), false);
  for (const Tensor& tensor : tensors) needed[tensor.node] = true;
  for (auto node = graph.nodes().rbegin(); node != graph.nodes().rend(); ++node) {
    if (!needed[node->id]) continue;
    for (const Tensor& input : node->inputs) needed[input.node] = true;
  }
  return needed;
}

std::vector<Tensor> Graph::trainable_variables() {
  std::vector<Tensor> result;
  for (const NodeId id : variables_) {
    if (node(id).as<op::Variable>()->trainable) result.push_back(output(id));
  }
  return result;
}

std::string Graph::unique_name(std::string name) {
  int& count = name_counts_[name];
  if (count == 0) {
    count = 1;
    return name;
  }
  std::string candidate;
  do {
    candidate = fmt::format("{}_{}", name, count++);
  } while (name_counts_.contains(candidate));
  name_counts_[candidate] = 1;
  return candidate;
}

Graph::Scope::Scope(Graph& graph, const std::string& name) : graph_(graph), outer_length_(graph.prefix_.size()) {
  graph_.prefix_ += name + "/";
}

Graph::Scope::~Scope() { graph_.prefix_.resize(outer_length_); }

Graph::DeviceScope::DeviceScope(Graph& graph, std::string_view device) : graph_(graph), outer_(graph.device_) {
  graph_.device_ = merge(outer_, parse_device(device));
}

Graph::DeviceScope::~DeviceScope() { graph_.device_ = outer_; }

}  // namespace trireme
