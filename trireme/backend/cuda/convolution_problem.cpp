#include <set>

#include "trireme/backend/cuda/convolution_kernel.hpp"
#include "trireme/base/error.hpp"

namespace trireme::cuda {
namespace {

bool is_allowed(const EngineConfig& config, const EngineRules& rules) {
  if (config.has(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC) || config.has(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS))
    return false;
  if (!rules.tensor_cores && config.has(CUDNN_NUMERICAL_NOTE_TENSOR_CORE)) return false;
  return !rules.exact || !(config.has(CUDNN_NUMERICAL_NOTE_WINOGRAD) || config.has(CUDNN_NUMERICAL_NOTE_FFT));
}

std::int64_t id_of(ConvolutionTensor tensor) { return static_cast<std::int64_t>(tensor); }

}  // namespace

std::shared_ptr<const OperationGraph> make_graph(const ConvolutionProblem& problem, cudnnHandle_t handle) {
  auto graph = std::make_shared<OperationGraph>();
  const auto tensor = [&](ConvolutionTensor which, const Shape& shape, DataType type) {
    return GraphTensor{.id = id_of(which), .shape = shape, .layout = problem.layout, .type = type};
  };
  const After& after = problem.after;
  const GraphTensor dst = tensor(ConvolutionTensor::dst, problem.dst, problem.type);
  int left = after.bias + after.add + after.relu;
  std::int64_t next_virtual = id_of(ConvolutionTensor::first_virtual);
  // An operation's result: dst if no other operation follows.
  const auto result = [&] {
    if (left-- == 0) return dst;
    return GraphTensor{.id = next_virtual++, .shape = problem.dst, .layout = problem.layout, .is_virtual = true};
  };

  GraphTensor last = result();
  graph->add_convolution(problem.direction, problem.window, tensor(ConvolutionTensor::src, problem.src, problem.type),
                         tensor(ConvolutionTensor::weights, problem.weights, problem.weights_type), last);
  // The addend first, as in the patterns for which cuDNN has prebuilt kernels.
  if (after.add) {
    const GraphTensor sum = result();
    graph->add_sum(last, tensor(ConvolutionTensor::addend, problem.dst, problem.type), sum);
    last = sum;
  }
  if (after.bias) {
    const GraphTensor sum = result();
    graph->add_sum(last, tensor(ConvolutionTensor::bias, {1, problem.dst[1], 1, 1}, DataType::f32), sum);
    last = sum;
  }
  if (after.relu) graph->add_relu(last, result());
  graph->finalize(handle);
  return graph;
}

std::vector<EngineConfig> find_engines(const OperationGraph& graph, const EngineRules& rules) {
  std::vector<cudnnBackendHeurMode_t> modes{CUDNN_HEUR_MODE_A};
  if (rules.more) modes.push_back(CUDNN_HEUR_MODE_B);
  modes.push_back(CUDNN_HEUR_MODE_FALLBACK);
  std::vector<EngineConfig> engines;
  std::set<std::string> seen;
  for (const cudnnBackendHeurMode_t mode : modes) {
    try {
      for (EngineConfig& config : graph.heuristics(mode)) {
        if (is_allowed(config, rules) && seen.insert(config.name()).second) engines.push_back(std::move(config));
      }
    } catch (const Error&) {  // these heuristics do not know such graphs; others may
    }
  }
  return engines;
}

}  // namespace trireme::cuda
