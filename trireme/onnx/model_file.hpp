// A network for inference in ONNX format, for ONNX Runtime, TensorRT, OpenVINO and others. Made from the model's graph,
// before fusion, and its variables' values. Used by `trireme export`.
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
  Tensor images;  // placeholder; "images" in the file
  Tensor logits;  // "logits" in the file
  const VariableStore& values;
  bool any_batch = true;                             // false: the file fixes the graph's batch size
  std::map<std::string, std::string> metadata = {};  // written to metadata_props
};

// The bytes of the file: opset 13, f32 values, variables under their names; fully connected weights have two axes.
// Error(bad_input) if ONNX lacks an operation the logits need, or the values exceed one file (2 GB).
std::string to_onnx(const Network& network);

}  // namespace trireme::onnx
