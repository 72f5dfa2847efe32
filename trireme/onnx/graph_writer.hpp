// Writes nodes, values and the ends of an ONNX graph into its message. Used by the translation of operations alone.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "trireme/base/shape.hpp"
#include "trireme/onnx/onnx.pb.h"

namespace trireme::onnx {

// Sets attributes of a node.
class NodeWriter {
 public:
  explicit NodeWriter(pb::Node& node) : node_(node) {}

  NodeWriter& set(const char* name, std::int64_t value);
  NodeWriter& set(const char* name, float value);
  NodeWriter& set(const char* name, const std::vector<std::int64_t>& values);

 private:
  pb::Attribute& add(const char* name, int type);
  pb::Node& node_;
};

class GraphWriter {
 public:
  explicit GraphWriter(pb::Graph& graph) : graph_(graph) {}

  // The node has the name of its output.
  NodeWriter add_node(const char* op_type, const std::vector<std::string>& inputs, const std::string& output);
  // Values that are part of the file.
  void add_values(const std::string& name, const Shape& shape, std::span<const float> values);
  void add_values(const std::string& name, const std::vector<std::int64_t>& values);
  // The first extent has a name instead of a number if the batch may be any.
  void add_input(const std::string& name, const Shape& shape, bool any_batch);
  void add_output(const std::string& name, const Shape& shape, bool any_batch);

 private:
  void add_tensor(const std::string& name, const Shape& shape, int type, std::span<const std::byte> bytes);
  pb::Graph& graph_;
};

}  // namespace trireme::onnx
