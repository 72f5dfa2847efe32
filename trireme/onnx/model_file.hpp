// A network for inference in the ONNX format, which other systems read: ONNX Runtime, TensorRT, OpenVINO. Made from the
// graph as a model builds it, before a plan fuses anything, and the values of its variables. Used by `trireme export`.
#pragma once

#include <map>
#include <string>

#include "trireme/graph/graph.hpp"

namespace trireme {
class VariableStore;
}

namespace trireme::onnx {

struct Network {
  std::string name;
  const Graph& graph;
  Tensor images;  // a placeholder; "images" in the file
  Tensor logits;  // "logits" in the file
  const VariableStore& values;
  bool any_batch = true;                             // false: the file says the batch size of the graph
  std::map<std::string, std::string> metadata = {};  // texts that go along, under metadata_props
};

// The bytes of the file: operators of opset 13, values in f32, variables under their names; a fully connected layer's
// weights have two axes. Error(bad_input) where an operation that the logits need has no form in ONNX, or where the
// values are too many for one file (2 GB).
std::string to_onnx(const Network& network);

}  // namespace trireme::onnx
