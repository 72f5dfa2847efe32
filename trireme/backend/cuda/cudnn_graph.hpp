// Owners for cuDNN's graph API: tensors and operations form a graph, heuristics name engines for it, and an engine with
// its knobs becomes an execution plan. Error(failed) if cuDNN refuses. Used by the convolution*.cpp files.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trireme/backend/cuda/library.hpp"
#include "trireme/graph/ops/common.hpp"
#include "trireme/plan/layout.hpp"

namespace trireme::cuda {

class BackendDescriptor {
 public:
  explicit BackendDescriptor(cudnnBackendDescriptorType_t type);

  template <typename Value>
  void set(cudnnBackendAttributeName_t name, std::span<const Value> values);
  template <typename Value>
  void set(cudnnBackendAttributeName_t name, const Value& value) {
    set(name, std::span<const Value>(&value, 1));
  }
  void set_descriptors(cudnnBackendAttributeName_t name, const std::vector<const BackendDescriptor*>& values);
  void finalize(const char* what);

  template <typename Value>
  Value get_value(cudnnBackendAttributeName_t name) const;
  void get_descriptor(cudnnBackendAttributeName_t name, BackendDescriptor& into) const;
  template <typename Value>
  std::vector<Value> get_values(cudnnBackendAttributeName_t name, std::int64_t most) const;
  std::vector<BackendDescriptor> get_descriptors(cudnnBackendAttributeName_t name, cudnnBackendDescriptorType_t type,
                                                 std::int64_t most) const;
  std::int64_t count_descriptors(cudnnBackendAttributeName_t name) const;

  cudnnBackendDescriptor_t get() const { return descriptor_.get(); }

 private:
  struct Destroy {
    void operator()(cudnnBackendDescriptor_t descriptor) const { cudnnBackendDestroyDescriptor(descriptor); }
  };
  std::unique_ptr<void, Destroy> descriptor_;
};

// A cuDNN engine with a value for each knob. The name contains both and is enough to rebuild it.
struct EngineConfig {
  std::int64_t engine = 0;
  std::vector<std::pair<int, std::int64_t>> knobs = {};  // type and value
  std::vector<cudnnBackendNumericalNote_t> notes = {};   // only known for engines from heuristics

  bool has(cudnnBackendNumericalNote_t note) const;
  std::string name() const;  // "engine4,2=17,13=1"
  static std::optional<EngineConfig> parse(std::string_view name);
};

enum class ConvolutionDirection : std::uint8_t { forward, backward_data, backward_weights };

// A tensor of rank 4. Plans get its memory by ID; a virtual tensor between operations has none.
struct GraphTensor {
  std::int64_t id = 0;
  Shape shape;
  Layout layout;
  DataType type = DataType::f32;
  bool is_virtual = false;
};

// Operations in order, computed as one. Sums are f32.
class OperationGraph {
 public:
  // src, weights and dst of the forward operation, or their gradients if the direction writes these.
  void add_convolution(ConvolutionDirection direction, const op::Window& window, const GraphTensor& src,
                       const GraphTensor& weights, const GraphTensor& dst);
  // b: null for a function of x alone.
  void add_pointwise(cudnnPointwiseMode_t mode, const GraphTensor& x, const GraphTensor* b, const GraphTensor& y);
  void finalize(cudnnHandle_t handle);

  std::vector<EngineConfig> heuristics(cudnnBackendHeurMode_t mode) const;
  const BackendDescriptor& descriptor() const { return graph_; }

 private:
  const BackendDescriptor& tensor(const GraphTensor& tensor);

  std::map<std::int64_t, BackendDescriptor> tensors_;
  std::vector<BackendDescriptor> descriptions_;  // of convolutions and pointwise operations
  std::vector<BackendDescriptor> operations_;
  BackendDescriptor graph_{CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR};
};

// A compiled way to compute a graph.
class ExecutionPlan {
 public:
  ExecutionPlan(std::shared_ptr<const OperationGraph> graph, const EngineConfig& config, cudnnHandle_t handle);

  std::int64_t workspace_bytes() const { return workspace_bytes_; }
  // The memory for execute(), made once: addresses by tensor ID.
  static BackendDescriptor bind(const std::map<std::int64_t, void*>& tensors, void* workspace);
  void execute(cudnnHandle_t handle, const BackendDescriptor& memory) const;

 private:
  std::shared_ptr<const OperationGraph> graph_;
  BackendDescriptor engine_{CUDNN_BACKEND_ENGINE_DESCRIPTOR};
  std::vector<BackendDescriptor> knobs_;
  BackendDescriptor config_{CUDNN_BACKEND_ENGINECFG_DESCRIPTOR};
  BackendDescriptor plan_{CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR};
  std::int64_t workspace_bytes_ = 0;
};

}  // namespace trireme::cuda
