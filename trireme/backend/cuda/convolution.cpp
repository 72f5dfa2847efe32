#include <set>

#include "trireme/backend/cuda/convolution_kernel.hpp"
#include "trireme/backend/cuda/formats.hpp"
#include "trireme/backend/cuda/kernels.hpp"
#include "trireme/base/error.hpp"

namespace trireme::cuda {
namespace {

constexpr std::int64_t kMostWorkspaceBytes = 1LL << 30;
constexpr std::size_t kMostEngines = 12;  // that are built and timed, per way

std::int64_t id_of(ConvolutionTensor tensor) { return static_cast<std::int64_t>(tensor); }

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
    const GraphTensor addend = tensor(ConvolutionTensor::addend, problem.dst, problem.type);
    graph->add_pointwise(CUDNN_POINTWISE_ADD, last, &addend, sum);
    last = sum;
  }
  if (after.bias) {
    const GraphTensor sum = result();
    const GraphTensor bias = tensor(ConvolutionTensor::bias, {1, problem.dst[1], 1, 1}, DataType::f32);
    graph->add_pointwise(CUDNN_POINTWISE_ADD, last, &bias, sum);
    last = sum;
  }
  if (after.relu) graph->add_pointwise(CUDNN_POINTWISE_RELU_FWD, last, nullptr, result());
  graph->finalize(handle);
  return graph;
}

struct EngineRules {
  bool tensor_cores = true;  // false: exact f32 products
  bool exact = false;        // no engines that round more than the direct sum (Winograd, FFT)
  bool more = false;         // ask all of cuDNN's heuristics
};

bool is_allowed(const EngineConfig& config, const EngineRules& rules) {
  if (config.has(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC) || config.has(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS))
    return false;
  if (!rules.tensor_cores && config.has(CUDNN_NUMERICAL_NOTE_TENSOR_CORE)) return false;
  return !rules.exact || !(config.has(CUDNN_NUMERICAL_NOTE_WINOGRAD) || config.has(CUDNN_NUMERICAL_NOTE_FFT));
}

// Best first by cuDNN's heuristics, without duplicates. Only engines that give the same bits in every run.
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

// Finds cuDNN's fastest engine for a convolution: a known one, else by timing those that cuDNN's heuristics name.
class Search {
 public:
  Search(ConvolutionWork work, const KernelRequest& request, CudaDevice& device, const Tuner& tuner)
      : work_(std::move(work)),
        request_(request),
        device_(device),
        tuner_(tuner),
        tensor_cores_(request.precision != Precision::fp32),
        ways_(ways_of(work_, tensor_cores_)) {}

  KernelChoice best() {
    if (auto chosen = forced(tuner_.options().force)) return std::move(*chosen);
    const std::string text = problem_text();
    if (const auto name = tuner_.known_fastest(text)) {
      if (auto known = rebuilt(*name)) return std::move(*known);
    }
    std::vector<Tuner::Alternative> alternatives = all();
    if (alternatives.empty()) {
      fail(ErrorKind::failed, "cuDNN {} has no {} for '{}': {}; it says:{}", cudnnGetVersion(),
           label_of(request_.node.op), request_.node.name, text, refusals_.empty() ? " no engine" : refusals_);
    }
    return tuner_.fastest(text, std::move(alternatives), request_);
  }

 private:
  // Everything besides the machine that the time depends on.
  std::string problem_text() const {
    return fmt::format("{} | src {} | weights {} | dst {} | {} | groups {} | {} | diff_weights {} | {}{}{}",
                       label_of(request_.node.op), to_string(work_.src), to_string(work_.weights), to_string(work_.dst),
                       to_string(work_.window), work_.groups, Format(work_.layout, work_.type).name(),
                       work_.diff_weights.name(), tensor_cores_ ? "tensor cores" : "no tensor cores",
                       tuner_.options().exact ? " | exact" : "", work_.image ? " | image" : "");
  }

  static std::string name_of(const ConvolutionWay& way, const EngineConfig& engine) {
    return way.name + ":" + engine.name();
  }

  std::optional<KernelChoice> rebuilt(const std::string& name) {
    const std::size_t colon = name.find(':');
    if (colon == std::string::npos) return std::nullopt;
    const auto engine = EngineConfig::parse(std::string_view(name).substr(colon + 1));
    for (const ConvolutionWay& way : ways_) {
      if (!engine || way.name != name.substr(0, colon)) continue;
      if (const auto graph = graph_of(way)) return build(way, graph, *engine);
    }
    return std::nullopt;
  }

  // name: of a way, with any engine, or of an alternative.
  std::optional<KernelChoice> forced(const std::string& name) {
    for (const ConvolutionWay& way : ways_) {
      const auto graph = way.name == name ? graph_of(way) : nullptr;
      if (!graph) continue;
      for (const EngineConfig& engine : find_engines(*graph, rules())) {
        if (auto choice = build(way, graph, engine)) return choice;
      }
    }
    return rebuilt(name);
  }

  EngineRules rules() const {
    return {.tensor_cores = tensor_cores_,
            .exact = tuner_.options().exact,
            .more = tuner_.options().autotune == Autotune::full};
  }

  std::vector<Tuner::Alternative> all() {
    const bool first_will_do = tuner_.options().autotune == Autotune::off;
    std::vector<Tuner::Alternative> alternatives;
    for (const ConvolutionWay& way : ways_) {
      const auto graph = graph_of(way);
      if (!graph) continue;
      std::size_t built = 0;
      for (const EngineConfig& engine : find_engines(*graph, rules())) {
        auto choice = build(way, graph, engine);
        if (!choice) continue;
        alternatives.push_back({name_of(way, engine), std::move(*choice)});
        if (first_will_do) return alternatives;
        if (++built == kMostEngines) break;
      }
    }
    return alternatives;
  }

  std::shared_ptr<const OperationGraph> graph_of(const ConvolutionWay& way) {
    try {
      return make_graph(problem_of(work_, way), device_.cudnn());
    } catch (const Error& error) {
      refusals_ += fmt::format("\n  {}: {}", way.name, error.what());
      return nullptr;
    }
  }

  // Nothing if cuDNN refuses: its heuristics also name engines that cannot run the problem.
  std::optional<KernelChoice> build(const ConvolutionWay& way, const std::shared_ptr<const OperationGraph>& graph,
                                    const EngineConfig& engine) {
    try {
      ExecutionPlan plan(graph, engine, device_.cudnn());
      if (plan.workspace_bytes() > kMostWorkspaceBytes) {
        fail(ErrorKind::failed, "its workspace has {} bytes", plan.workspace_bytes());
      }
      KernelChoice choice = make_choice(work_, way, std::move(plan), device_);
      choice.implementation = "cudnn:" + name_of(way, engine);
      return choice;
    } catch (const Error& error) {
      refusals_ += fmt::format("\n  {}: {}", name_of(way, engine), error.what());
      return std::nullopt;
    }
  }

  ConvolutionWork work_;
  const KernelRequest& request_;
  CudaDevice& device_;
  const Tuner& tuner_;
  bool tensor_cores_;
  std::vector<ConvolutionWay> ways_;
  std::string refusals_;  // cuDNN's errors, one per line
};

// The layout requested for the weights' gradient, else that of the activations, which the weights have too.
Format diff_weights_format(const KernelRequest& request, const Layout& layout) {
  const Layout* const wish = simple_wish(request);
  return wish != nullptr ? *wish : layout;
}

// Whether src may come in an image layout: it needs a reorder anyway.
bool comes_as_image(const KernelRequest& request, std::int64_t groups) {
  const TensorDesc& src = request.inputs[0];
  return request.precision != Precision::fp32 && groups == 1 && src.shape[1] <= kMostImageChannels &&
         activation_layout(request, 4) == Layout::channels_last(4) && src.format() != activation_format(request, 4);
}

}  // namespace

KernelChoice make(const op::Convolution& operation, const KernelRequest& request, CudaDevice& device,
                  const Tuner& tuner) {
  const ConvolutionWork work{
      .direction = ConvolutionDirection::forward,
      .src = request.inputs[0].shape,
      .weights = request.inputs[1].shape,
      .dst = request.node.outputs[0].shape,
      .window = operation.window,
      .groups = operation.groups,
      .layout = activation_layout(request, 4),
      .type = activation_type(request.precision),
      .after = {.bias = operation.bias, .add = operation.add, .relu = operation.activation == op::Activation::relu},
      .image = comes_as_image(request, operation.groups)};
  return Search(work, request, device, tuner).best();
}

KernelChoice make(const op::ConvolutionBackwardData& operation, const KernelRequest& request, CudaDevice& device,
                  const Tuner& tuner) {
  const ConvolutionWork work{.direction = ConvolutionDirection::backward_data,
                             .src = operation.src_shape,
                             .weights = request.inputs[1].shape,
                             .dst = request.inputs[0].shape,
                             .window = operation.window,
                             .groups = operation.groups,
                             .layout = activation_layout(request, 4),
                             .type = activation_type(request.precision)};
  return Search(work, request, device, tuner).best();
}

KernelChoice make(const op::ConvolutionBackwardWeights& operation, const KernelRequest& request, CudaDevice& device,
                  const Tuner& tuner) {
  const Layout layout = activation_layout(request, 4);
  const ConvolutionWork work{.direction = ConvolutionDirection::backward_weights,
                             .src = request.inputs[0].shape,
                             .weights = operation.weights_shape,
                             .dst = request.inputs[1].shape,
                             .window = operation.window,
                             .groups = operation.groups,
                             .layout = layout,
                             .type = activation_type(request.precision),
                             .diff_weights = diff_weights_format(request, layout),
                             .diff_bias = operation.bias,
                             .image = comes_as_image(request, operation.groups)};
  return Search(work, request, device, tuner).best();
}

}  // namespace trireme::cuda
