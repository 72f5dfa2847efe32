#include "trireme/onnx/graph_writer.hpp"

#include <bit>

namespace trireme::onnx {
namespace {

static_assert(std::endian::native == std::endian::little, "values are little-endian in the file");

// ONNX's numbers of types: of attributes, and of elements.
constexpr int kAttributeFloat = 1, kAttributeInt = 2, kAttributeInts = 7;
constexpr int kFloat = 1, kInt64 = 7;

void describe(pb::ValueInfo& info, const std::string& name, const Shape& shape, bool any_batch) {
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

}  // namespace

pb::Attribute& NodeWriter::add(const char* name, int type) {
  pb::Attribute& attribute = *node_.add_attribute();
  attribute.set_name(name);
  attribute.set_type(type);
  return attribute;
}

NodeWriter& NodeWriter::set(const char* name, std::int64_t value) {
  add(name, kAttributeInt).set_i(value);
  return *this;
}

NodeWriter& NodeWriter::set(const char* name, float value) {
  add(name, kAttributeFloat).set_f(value);
  return *this;
}

NodeWriter& NodeWriter::set(const char* name, const std::vector<std::int64_t>& values) {
  add(name, kAttributeInts).mutable_ints()->Add(values.begin(), values.end());
  return *this;
}

NodeWriter GraphWriter::add_node(const char* op_type, const std::vector<std::string>& inputs,
                                 const std::string& output) {
  pb::Node& node = *graph_.add_node();
  node.set_op_type(op_type);
  for (const std::string& input : inputs) node.add_input(input);
  node.add_output(output);
  node.set_name(output);
  return NodeWriter(node);
}

void GraphWriter::add_tensor(const std::string& name, const Shape& shape, int type, std::span<const std::byte> bytes) {
  pb::Tensor& tensor = *graph_.add_initializer();
  tensor.set_name(name);
  tensor.mutable_dims()->Add(shape.begin(), shape.end());
  tensor.set_data_type(type);
  tensor.set_raw_data(bytes.data(), bytes.size());
}

void GraphWriter::add_values(const std::string& name, const Shape& shape, std::span<const float> values) {
  add_tensor(name, shape, kFloat, std::as_bytes(values));
}

void GraphWriter::add_values(const std::string& name, const std::vector<std::int64_t>& values) {
  add_tensor(name, {std::ssize(values)}, kInt64, std::as_bytes(std::span(values)));
}

void GraphWriter::add_input(const std::string& name, const Shape& shape, bool any_batch) {
  describe(*graph_.add_input(), name, shape, any_batch);
}

void GraphWriter::add_output(const std::string& name, const Shape& shape, bool any_batch) {
  describe(*graph_.add_output(), name, shape, any_batch);
}

}  // namespace trireme::onnx
