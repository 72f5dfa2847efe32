#include "trireme/onnx/model_file.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <map>
#include <span>

#include "trireme/base/error.hpp"
#include "trireme/base/units.hpp"
#include "trireme/onnx/onnx.pb.h"
#include "trireme/runtime/variable_store.hpp"

namespace trireme::onnx {
namespace {

constexpr std::int64_t kIrVersion = 7, kOpset = 13;  // of ONNX 1.8: later versions add nothing needed here
// A message has at most 2^31 - 1 bytes; everything besides values needs far less than the difference.
constexpr std::int64_t kMostValueBytes = std::numeric_limits<std::int32_t>::max() - (std::int64_t{64} << 20);

static_assert(std::endian::native == std::endian::little, "values are little-endian in the file");

// ONNX's type numbers of attributes and elements.
constexpr int kAttributeFloat = 1, kAttributeInt = 2, kAttributeInts = 7;
constexpr int kFloat = 1, kInt64 = 7;

class NodeWriter {
 public:
  explicit NodeWriter(pb::Node& node) : node_(node) {}

  NodeWriter& set(const char* name, std::int64_t value) {
    add(name, kAttributeInt).set_i(value);
    return *this;
  }
  NodeWriter& set(const char* name, float value) {
    add(name, kAttributeFloat).set_f(value);
    return *this;
  }
  NodeWriter& set(const char* name, const std::vector<std::int64_t>& values) {
    add(name, kAttributeInts).mutable_ints()->Add(values.begin(), values.end());
    return *this;
  }

 private:
  pb::Attribute& add(const char* name, int type) {
    pb::Attribute& attribute = *node_.add_attribute();
    attribute.set_name(name);
    attribute.set_type(type);
    return attribute;
  }

  pb::Node& node_;
};

// Writes nodes, values, inputs and outputs into an ONNX graph message.
class GraphWriter {
 public:
  explicit GraphWriter(pb::Graph& graph) : graph_(graph) {}

  // Nodes are named after their output.
  NodeWriter add_node(const char* op_type, const std::vector<std::string>& inputs, const std::string& output) {
    pb::Node& node = *graph_.add_node();
    node.set_op_type(op_type);
    for (const std::string& input : inputs) node.add_input(input);
    node.add_output(output);
    node.set_name(output);
    return NodeWriter(node);
  }

  // Values stored in the file.
  void add_values(const std::string& name, const Shape& shape, std::span<const float> values) {
    add_tensor(name, shape, kFloat, std::as_bytes(values));
  }
  void add_values(const std::string& name, const std::vector<std::int64_t>& values) {
    add_tensor(name, {std::ssize(values)}, kInt64, std::as_bytes(std::span(values)));
  }

  // With any_batch, the first dimension has a name instead of a number.
  void add_input(const std::string& name, const Shape& shape, bool any_batch) {
    describe(*graph_.add_input(), name, shape, any_batch);
  }
  void add_output(const std::string& name, const Shape& shape, bool any_batch) {
    describe(*graph_.add_output(), name, shape, any_batch);
  }

 private:
  static void describe(pb::ValueInfo& info, const std::string& name, const Shape& shape, bool any_batch) {
    info.set_name(name);
    pb::Type::Tensor& type = *info.mutable_type()->mutable_tensor_type();
    type.set_elem_type(kFloat);
    for (int axis = 0; axis < shape.rank(); ++axis) {
      pb::TensorShape::Dimension& dimension = *type.mutable_shape()->add_dim();
      if (axis == 0 && any_batch) {
        dimension.set_dim_param("batch");
      } else {
        dimension.set_dim_value(shape[axis]);
      }
    }
  }

  void add_tensor(const std::string& name, const Shape& shape, int type, std::span<const std::byte> bytes) {
    pb::Tensor& tensor = *graph_.add_initializer();
    tensor.set_name(name);
    tensor.mutable_dims()->Add(shape.begin(), shape.end());
    tensor.set_data_type(type);
    tensor.set_raw_data(bytes.data(), bytes.size());
  }

  pb::Graph& graph_;
};

std::vector<std::int64_t> list(const op::Pair& pair) { return {pair[0], pair[1]}; }

// ONNX's order of padding: before all axes, then after all axes.
std::vector<std::int64_t> joined(std::vector<std::int64_t> before, const std::vector<std::int64_t>& after) {
  before.insert(before.end(), after.begin(), after.end());
  return before;
}

void set_window(NodeWriter& node, const op::Window& window) {
  node.set("kernel_shape", list(window.kernel))
      .set("strides", list(window.stride))
      .set("pads", joined(list(window.pad_before), list(window.pad_after)));
}

// Null: no ONNX operator in this opset.
const char* operator_of(op::UnaryKind kind) {
  using enum op::UnaryKind;
  switch (kind) {
    case relu:
      return "Relu";
    case leaky_relu:
      return "LeakyRelu";
    case elu:
      return "Elu";
    case sigmoid:
      return "Sigmoid";
    case tanh:
      return "Tanh";
    case softplus:
      return "Softplus";
    case abs:
      return "Abs";
    case sqrt:
      return "Sqrt";
    case exp:
      return "Exp";
    case log:
      return "Log";
    case negate:
      return "Neg";
    case clip:
      return "Clip";
    case affine:  // Mul, Add or both
    case swish:
    case gelu:
    case square:
      return nullptr;
  }
  return nullptr;
}

const char* operator_of(op::BinaryKind kind) {
  using enum op::BinaryKind;
  switch (kind) {
    case add:
      return "Add";
    case subtract:
      return "Sub";
    case multiply:
      return "Mul";
    case divide:
      return "Div";
    case maximum:
      return "Max";
    case minimum:
      return "Min";
    case equal:
    case greater_equal:
      return nullptr;  // their results are not numbers in ONNX
  }
  return nullptr;
}

// Nodes that depend on the images, by id: the first dimension of their results is the batch.
std::vector<bool> batched_nodes(const Network& network) {
  std::vector<bool> batched(network.graph.nodes().size());
  for (const Node& node : network.graph.nodes()) {
    const auto is_batched = [&](const Tensor& input) { return batched[input.node]; };
    batched[node.id] = node.id == network.images.node || std::ranges::any_of(node.inputs, is_batched);
  }
  return batched;
}

// One function per operation; others are rejected by name.
class Translation {
 public:
  Translation(const Network& network, pb::Graph& graph)
      : network_(network), writer_(graph), batched_(batched_nodes(network)) {}

  void add(const Node& node) {
    std::visit([&](const auto& op) { translate(node, op); }, node.op);
  }
  void add_ends() {
    writer_.add_input("images", network_.images.shape(), network_.any_batch);
    writer_.add_output("logits", network_.logits.shape(), network_.any_batch);
  }

 private:
  [[noreturn]] static void refuse(const Node& node, std::string_view what) {
    bad_input("'{}': trireme cannot export {} to ONNX; docs/exporting.md lists what it can export", node.name, what);
  }

  std::string result_name(const Node& node) const {
    if (node.id == network_.images.node) return "images";
    return node.id == network_.logits.node ? "logits" : node.name;
  }

  // Stores a variable's values at their first use, in the requested shape; another shape stores them again, as files
  // have no views.
  std::string read_variable(const Node& variable, const Shape& shape) {
    std::string name = variable.name;
    for (const auto& [stored_name, stored_shape] : stored_[variable.id]) {
      if (stored_shape == shape) return stored_name;
      name = fmt::format("{}/{}", variable.name, to_string(shape));
    }
    writer_.add_values(name, shape, network_.values.get(variable.id).f32());
    stored_[variable.id].emplace_back(name, shape);
    return name;
  }

  std::string read(const Tensor& tensor) {
    const Node& node = network_.graph.node(tensor);
    return node.as<op::Variable>() != nullptr ? read_variable(node, tensor.shape()) : result_name(node);
  }
  std::vector<std::string> read_all(const Node& node) {
    std::vector<std::string> names;
    for (const Tensor& input : node.inputs) names.push_back(read(input));
    return names;
  }
  // Merges all axes but the first.
  std::string read_matrix(const Tensor& tensor) {
    const Shape& shape = tensor.shape();
    if (shape.rank() == 2) return read(tensor);
    const Node& node = network_.graph.node(tensor);
    if (node.as<op::Variable>() != nullptr) return read_variable(node, {shape[0], shape.elements() / shape[0]});
    const std::string name = result_name(node) + "/matrix";
    if (std::ranges::find(matrices_, node.id) == matrices_.end()) {
      writer_.add_node("Flatten", {result_name(node)}, name).set("axis", std::int64_t{1});
      matrices_.push_back(node.id);
    }
    return name;
  }

  // Stores a scalar of a node and returns its name in the file.
  std::string number(const Node& node, const char* what, float value) {
    const std::string name = fmt::format("{}/{}", node.name, what);
    writer_.add_values(name, {}, std::span(&value, 1));
    return name;
  }

  NodeWriter add_node(const char* op_type, const std::vector<std::string>& inputs, const Node& node) {
    return writer_.add_node(op_type, inputs, result_name(node));
  }

  template <typename Op>
  void translate(const Node& node, const Op& /*op*/) {
    refuse(node, Op::kName);
  }

  void translate(const Node& /*node*/, const op::Variable& /*op*/) {}  // stored where it is read

  void translate(const Node& node, const op::Constant& op) {
    writer_.add_values(result_name(node), node.outputs[0].shape, op.value.f32());
  }

  void translate(const Node& node, const op::Placeholder& /*op*/) {
    if (node.id != network_.images.node) refuse(node, "a placeholder other than the images");
  }

  void translate(const Node& node, const op::Convolution& op) {
    NodeWriter written = add_node("Conv", read_all(node), node);
    set_window(written, op.window);
    written.set("dilations", list(op.window.dilation)).set("group", op.groups);
  }

  void translate(const Node& node, const op::Pool& op) {
    const bool is_max = op.kind == op::PoolKind::max;
    NodeWriter written = add_node(is_max ? "MaxPool" : "AveragePool", read_all(node), node);
    set_window(written, op.window);
    if (!is_max) {
      written.set("count_include_pad", std::int64_t{op.kind == op::PoolKind::average_include_padding ? 1 : 0});
    }
  }

  void translate(const Node& node, const op::FullyConnected& op) {
    std::vector<std::string> inputs{read_matrix(node.inputs[0]), read_matrix(node.inputs[1])};
    if (op.bias) inputs.push_back(read(node.inputs[2]));
    add_node("Gemm", inputs, node).set("transB", std::int64_t{1});
  }

  void translate(const Node& node, const op::BatchNormInference& op) {
    std::vector<std::string> inputs = read_all(node);
    if (!op.gamma) {
      const std::string ones = node.name + "/gamma";
      const Shape channels = node.inputs[1].shape();
      writer_.add_values(ones, channels, std::vector<float>(static_cast<std::size_t>(channels.elements()), 1.0f));
      inputs.insert(inputs.begin() + 1, ones);
    }
    add_node("BatchNormalization", inputs, node).set("epsilon", op.epsilon);
  }

  void translate(const Node& node, const op::Lrn& op) {
    add_node("LRN", read_all(node), node)
        .set("size", op.size)
        .set("alpha", op.alpha)
        .set("beta", op.beta)
        .set("bias", op.k);
  }

  void translate(const Node& node, const op::Unary& op) {
    if (op.kind == op::UnaryKind::affine) return translate_affine(node, op);
    const char* op_type = operator_of(op.kind);
    if (op_type == nullptr) refuse(node, to_string(op.kind));
    std::vector<std::string> inputs = read_all(node);
    if (op.kind == op::UnaryKind::clip) {
      inputs.push_back(number(node, "low", op.alpha));
      inputs.push_back(number(node, "high", op.beta));
    }
    NodeWriter written = add_node(op_type, inputs, node);
    if (op.kind == op::UnaryKind::leaky_relu || op.kind == op::UnaryKind::elu) written.set("alpha", op.alpha);
  }

  void translate_affine(const Node& node, const op::Unary& op) {
    std::string src = read(node.inputs[0]);
    if (op.beta == 0) {
      add_node("Mul", {src, number(node, "scale", op.alpha)}, node);
      return;
    }
    if (op.alpha != 1) {
      const std::string product = node.name + "/product";
      writer_.add_node("Mul", {src, number(node, "scale", op.alpha)}, product);
      src = product;
    }
    add_node("Add", {src, number(node, "offset", op.beta)}, node);
  }

  void translate(const Node& node, const op::Binary& op) {
    const char* op_type = operator_of(op.kind);
    if (op_type == nullptr) refuse(node, to_string(op.kind));
    add_node(op_type, read_all(node), node);
  }

  void translate(const Node& node, const op::Concat& op) {
    add_node("Concat", read_all(node), node).set("axis", std::int64_t{op.axis});
  }

  void translate(const Node& node, const op::Pad& op) {
    const std::string pads = node.name + "/pads";
    writer_.add_values(pads, joined(op.before, op.after));
    add_node("Pad", {read(node.inputs[0]), pads, number(node, "value", op.value)}, node);
  }

  void translate(const Node& node, const op::Reshape& op) {
    const std::string shape = node.name + "/shape";
    std::vector<std::int64_t> extents(op.shape.begin(), op.shape.end());
    if (network_.any_batch && batched_[node.id]) {
      const Shape& src = node.inputs[0].shape();
      if (src.rank() == 0 || extents.empty() || extents[0] != src[0]) {
        bad_input(
            "'{}': reshapes {} to {}, which is not the same for every batch size; export it for a fixed batch size",
            node.name, to_string(src), to_string(op.shape));
      }
      extents[0] = 0;  // keep the input's extent
    }
    writer_.add_values(shape, extents);
    add_node("Reshape", {read(node.inputs[0]), shape}, node);
  }

  void translate(const Node& node, const op::Reduce& op) {
    if (op.kind == op::ReduceKind::sum) refuse(node, "reduce_sum");
    NodeWriter written = add_node(op.kind == op::ReduceKind::mean ? "ReduceMean" : "ReduceMax", read_all(node), node);
    if (!op.axes.empty()) written.set("axes", std::vector<std::int64_t>(op.axes.begin(), op.axes.end()));
    written.set("keepdims", std::int64_t{op.keep_dims ? 1 : 0});
  }

  void translate(const Node& node, const op::Softmax& /*op*/) {
    add_node("Softmax", read_all(node), node).set("axis", std::int64_t{-1});
  }

  const Network& network_;
  GraphWriter writer_;
  std::vector<bool> batched_;
  std::map<NodeId, std::vector<std::pair<std::string, Shape>>> stored_;  // names and shapes of each variable's stored
                                                                         // values
  std::vector<NodeId> matrices_;                                         // nodes whose results were made matrices
};

void check_size(const Network& network, const std::vector<bool>& needed) {
  std::int64_t bytes = 0;
  for (const Node& node : network.graph.nodes()) {
    const bool has_values = node.as<op::Variable>() != nullptr || node.as<op::Constant>() != nullptr;
    if (needed[node.id] && has_values) bytes += node.outputs[0].bytes();
  }
  if (bytes > kMostValueBytes) {
    bad_input("{}: its variables take {}, but an ONNX file holds at most {}; export it as safetensors", network.name,
              format_bytes(static_cast<double>(bytes)), format_bytes(static_cast<double>(kMostValueBytes)));
  }
}

}  // namespace

std::string to_onnx(const Network& network) {
  const std::vector<bool> needed = needed_for({&network.logits, 1}, network.graph);
  check_size(network, needed);
  pb::Model model;
  model.set_ir_version(kIrVersion);
  model.set_producer_name("trireme");
  model.add_opset_import()->set_version(kOpset);
  model.mutable_graph()->set_name(network.name);
  Translation translation(network, *model.mutable_graph());
  for (const Node& node : network.graph.nodes()) {
    if (needed[node.id]) translation.add(node);
  }
  translation.add_ends();
  for (const auto& [key, value] : network.metadata) {
    pb::StringPair& pair = *model.add_metadata_props();
    pair.set_key(key);
    pair.set_value(value);
  }
  return model.SerializeAsString();
}

}  // namespace trireme::onnx
