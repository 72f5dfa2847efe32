#include "trireme/backend/cuda/cudnn_graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <type_traits>

#include "trireme/backend/cuda/strided.hpp"

namespace trireme::cuda {
namespace {

// cuDNN's attribute type for a value type.
constexpr auto attribute_type(std::type_identity<void*>) { return CUDNN_TYPE_VOID_PTR; }
constexpr auto attribute_type(std::type_identity<std::int64_t>) { return CUDNN_TYPE_INT64; }
constexpr auto attribute_type(std::type_identity<float>) { return CUDNN_TYPE_FLOAT; }
constexpr auto attribute_type(std::type_identity<bool>) { return CUDNN_TYPE_BOOLEAN; }
constexpr auto attribute_type(std::type_identity<cudnnHandle_t>) { return CUDNN_TYPE_HANDLE; }
constexpr auto attribute_type(std::type_identity<cudnnDataType_t>) { return CUDNN_TYPE_DATA_TYPE; }
constexpr auto attribute_type(std::type_identity<cudnnConvolutionMode_t>) { return CUDNN_TYPE_CONVOLUTION_MODE; }
constexpr auto attribute_type(std::type_identity<cudnnPointwiseMode_t>) { return CUDNN_TYPE_POINTWISE_MODE; }
constexpr auto attribute_type(std::type_identity<cudnnBackendHeurMode_t>) { return CUDNN_TYPE_HEUR_MODE; }
constexpr auto attribute_type(std::type_identity<cudnnBackendKnobType_t>) { return CUDNN_TYPE_KNOB_TYPE; }
constexpr auto attribute_type(std::type_identity<cudnnBackendNumericalNote_t>) { return CUDNN_TYPE_NUMERICAL_NOTE; }
template <typename Value>
constexpr cudnnBackendAttributeType_t kAttributeType = attribute_type(std::type_identity<Value>());

cudnnDataType_t to_cudnn(DataType type) {
  if (type == DataType::bf16) return CUDNN_DATA_BFLOAT16;
  return type == DataType::f16 ? CUDNN_DATA_HALF : CUDNN_DATA_FLOAT;
}

// The attributes of a convolution, which differ by direction.
struct ConvolutionAttributes {
  cudnnBackendDescriptorType_t operation;
  cudnnBackendAttributeName_t description, src, weights, dst, alpha, beta;
};

ConvolutionAttributes attributes_of(ConvolutionDirection direction) {
  switch (direction) {
    case ConvolutionDirection::forward:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
    case ConvolutionDirection::backward_data:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
    case ConvolutionDirection::backward_weights:
      break;
  }
  return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
}

std::vector<const BackendDescriptor*> pointers_to(const std::vector<BackendDescriptor>& descriptors) {
  std::vector<const BackendDescriptor*> pointers;
  for (const BackendDescriptor& descriptor : descriptors) pointers.push_back(&descriptor);
  return pointers;
}

EngineConfig read_config(const BackendDescriptor& found) {
  EngineConfig config;
  BackendDescriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  found.get_descriptor(CUDNN_ATTR_ENGINECFG_ENGINE, engine);
  config.engine = engine.get_value<std::int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX);
  config.notes =
      engine.get_values<cudnnBackendNumericalNote_t>(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
  for (const BackendDescriptor& knob : found.get_descriptors(
           CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, CUDNN_KNOB_TYPE_COUNTS)) {
    config.knobs.emplace_back(knob.get_value<cudnnBackendKnobType_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE),
                              knob.get_value<std::int64_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE));
  }
  return config;
}

constexpr std::string_view kEngine = "engine";

}  // namespace

BackendDescriptor::BackendDescriptor(cudnnBackendDescriptorType_t type) {
  cudnnBackendDescriptor_t descriptor = nullptr;
  check(cudnnBackendCreateDescriptor(type, &descriptor), "no descriptor");
  descriptor_.reset(descriptor);
}

template <typename Value>
void BackendDescriptor::set(cudnnBackendAttributeName_t name, std::span<const Value> values) {
  check(cudnnBackendSetAttribute(get(), name, kAttributeType<Value>, std::ssize(values), values.data()),
        "an attribute cannot be set");
}

void BackendDescriptor::set_descriptors(cudnnBackendAttributeName_t name,
                                        const std::vector<const BackendDescriptor*>& values) {
  std::vector<cudnnBackendDescriptor_t> raw;
  for (const BackendDescriptor* value : values) raw.push_back(value->get());
  check(cudnnBackendSetAttribute(get(), name, CUDNN_TYPE_BACKEND_DESCRIPTOR, std::ssize(raw), raw.data()),
        "an attribute cannot be set");
}

void BackendDescriptor::finalize(const char* what) { check(cudnnBackendFinalize(get()), what); }

template <typename Value>
Value BackendDescriptor::get_value(cudnnBackendAttributeName_t name) const {
  Value value{};
  std::int64_t count = 0;
  check(cudnnBackendGetAttribute(get(), name, kAttributeType<Value>, 1, &count, &value), "an attribute cannot be read");
  return value;
}

void BackendDescriptor::get_descriptor(cudnnBackendAttributeName_t name, BackendDescriptor& into) const {
  cudnnBackendDescriptor_t raw = into.get();
  std::int64_t count = 0;
  check(cudnnBackendGetAttribute(get(), name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &raw),
        "an attribute cannot be read");
}

template <typename Value>
std::vector<Value> BackendDescriptor::get_values(cudnnBackendAttributeName_t name, std::int64_t most) const {
  std::vector<Value> values(most);
  std::int64_t count = 0;
  check(cudnnBackendGetAttribute(get(), name, kAttributeType<Value>, most, &count, values.data()),
        "an attribute cannot be read");
  values.resize(std::min(count, most));
  return values;
}

std::vector<BackendDescriptor> BackendDescriptor::get_descriptors(cudnnBackendAttributeName_t name,
                                                                  cudnnBackendDescriptorType_t type,
                                                                  std::int64_t most) const {
  std::vector<BackendDescriptor> values;
  std::vector<cudnnBackendDescriptor_t> raw;
  for (std::int64_t i = 0; i < most; ++i) raw.push_back(values.emplace_back(type).get());
  std::int64_t count = 0;
  check(cudnnBackendGetAttribute(get(), name, CUDNN_TYPE_BACKEND_DESCRIPTOR, most, &count, raw.data()),
        "an attribute cannot be read");
  values.erase(values.begin() + std::min(count, most), values.end());
  return values;
}

std::int64_t BackendDescriptor::count_descriptors(cudnnBackendAttributeName_t name) const {
  std::int64_t count = 0;
  check(cudnnBackendGetAttribute(get(), name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count, nullptr),
        "an attribute cannot be read");
  return count;
}

bool EngineConfig::has(cudnnBackendNumericalNote_t note) const {
  return std::find(notes.begin(), notes.end(), note) != notes.end();
}

std::string EngineConfig::name() const {
  std::string text = fmt::format("{}{}", kEngine, engine);
  for (const auto& [type, value] : knobs) text += fmt::format(",{}={}", type, value);
  return text;
}

std::optional<EngineConfig> EngineConfig::parse(std::string_view name) {
  if (!name.starts_with(kEngine)) return std::nullopt;
  const char* at = name.data() + kEngine.size();
  const char* const end = name.data() + name.size();
  const auto number = [&](auto& value) {
    const auto [rest, error] = std::from_chars(at, end, value);
    at = rest;
    return error == std::errc();
  };
  const auto sign = [&](char expected) { return at != end && *at++ == expected; };
  EngineConfig config;
  if (!number(config.engine)) return std::nullopt;
  while (at != end) {
    auto& [type, value] = config.knobs.emplace_back();
    if (!sign(',') || !number(type) || !sign('=') || !number(value)) return std::nullopt;
  }
  return config;
}

const BackendDescriptor& OperationGraph::tensor(const GraphTensor& tensor) {
  const auto known = tensors_.find(tensor.id);
  if (known != tensors_.end()) return known->second;
  BackendDescriptor descriptor(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  constexpr std::int64_t kAlignment = 16;  // bytes; the plan's buffers have more
  descriptor.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, tensor.id);
  descriptor.set(CUDNN_ATTR_TENSOR_DATA_TYPE, to_cudnn(tensor.type));
  descriptor.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, kAlignment);
  descriptor.set(CUDNN_ATTR_TENSOR_DIMENSIONS, std::span<const std::int64_t>(tensor.shape.dims()));
  descriptor.set(CUDNN_ATTR_TENSOR_STRIDES, std::span<const std::int64_t>(axis_strides(tensor.shape, tensor.layout)));
  descriptor.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, tensor.is_virtual);
  descriptor.finalize("a tensor is refused");
  return tensors_.emplace(tensor.id, std::move(descriptor)).first->second;
}

void OperationGraph::add_convolution(ConvolutionDirection direction, const op::Window& window, const GraphTensor& src,
                                     const GraphTensor& weights, const GraphTensor& dst) {
  BackendDescriptor& convolution = descriptions_.emplace_back(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  constexpr std::int64_t kAxes = 2;
  convolution.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, kAxes);
  convolution.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT);
  convolution.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_CROSS_CORRELATION);
  convolution.set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, std::span<const std::int64_t>(window.pad_before));
  convolution.set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, std::span<const std::int64_t>(window.pad_after));
  convolution.set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, std::span<const std::int64_t>(window.stride));
  convolution.set(CUDNN_ATTR_CONVOLUTION_DILATIONS, std::span<const std::int64_t>(window.dilation));
  convolution.finalize("a convolution is refused");

  const ConvolutionAttributes attributes = attributes_of(direction);
  BackendDescriptor operation(attributes.operation);
  operation.set_descriptors(attributes.description, {&convolution});
  operation.set_descriptors(attributes.src, {&tensor(src)});
  operation.set_descriptors(attributes.weights, {&tensor(weights)});
  operation.set_descriptors(attributes.dst, {&tensor(dst)});
  operation.set(attributes.alpha, 1.0f);
  operation.set(attributes.beta, 0.0f);
  operation.finalize("a convolution is refused");
  operations_.push_back(std::move(operation));
}

void OperationGraph::add_pointwise(cudnnPointwiseMode_t mode, const GraphTensor& x, const GraphTensor* b,
                                   const GraphTensor& y) {
  BackendDescriptor& pointwise = descriptions_.emplace_back(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  pointwise.set(CUDNN_ATTR_POINTWISE_MODE, mode);
  pointwise.set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_DATA_FLOAT);
  pointwise.finalize("a pointwise operation is refused");

  BackendDescriptor operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  operation.set_descriptors(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, {&pointwise});
  operation.set_descriptors(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, {&tensor(x)});
  if (b != nullptr) operation.set_descriptors(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, {&tensor(*b)});
  operation.set_descriptors(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, {&tensor(y)});
  operation.finalize("a pointwise operation is refused");
  operations_.push_back(std::move(operation));
}

void OperationGraph::finalize(cudnnHandle_t handle) {
  graph_.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, handle);
  graph_.set_descriptors(CUDNN_ATTR_OPERATIONGRAPH_OPS, pointers_to(operations_));
  graph_.finalize("a graph of operations is refused");
}

std::vector<EngineConfig> OperationGraph::heuristics(cudnnBackendHeurMode_t mode) const {
  BackendDescriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristics.set_descriptors(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, {&graph_});
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_MODE, mode);
  heuristics.finalize("no heuristics");
  const auto found = heuristics.get_descriptors(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR,
                                                heuristics.count_descriptors(CUDNN_ATTR_ENGINEHEUR_RESULTS));
  std::vector<EngineConfig> configs;
  for (const BackendDescriptor& descriptor : found) configs.push_back(read_config(descriptor));
  return configs;
}

ExecutionPlan::ExecutionPlan(std::shared_ptr<const OperationGraph> graph, const EngineConfig& config,
                             cudnnHandle_t handle)
    : graph_(std::move(graph)) {
  engine_.set_descriptors(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, {&graph_->descriptor()});
  engine_.set(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, config.engine);
  engine_.finalize("the engine is refused");
  for (const auto& [type, value] : config.knobs) {
    BackendDescriptor& knob = knobs_.emplace_back(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
    knob.set(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, static_cast<cudnnBackendKnobType_t>(type));
    knob.set(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, value);
    knob.finalize("a knob is refused");
  }
  config_.set_descriptors(CUDNN_ATTR_ENGINECFG_ENGINE, {&engine_});
  if (!knobs_.empty()) config_.set_descriptors(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, pointers_to(knobs_));
  config_.finalize("the engine's configuration is refused");
  plan_.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, handle);
  plan_.set_descriptors(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, {&config_});
  plan_.finalize("the plan is refused");
  workspace_bytes_ = plan_.get_value<std::int64_t>(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
}

BackendDescriptor ExecutionPlan::bind(const std::map<std::int64_t, void*>& tensors, void* workspace) {
  std::vector<std::int64_t> ids;
  std::vector<void*> pointers;
  for (const auto& [id, pointer] : tensors) {
    ids.push_back(id);
    pointers.push_back(pointer);
  }
  BackendDescriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, std::span<const std::int64_t>(ids));
  pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, std::span<void* const>(pointers));
  pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, workspace);
  pack.finalize("the memory of a plan is refused");
  return pack;
}

void ExecutionPlan::execute(cudnnHandle_t handle, const BackendDescriptor& memory) const {
  check(cudnnBackendExecute(handle, plan_.get(), memory.get()), "a plan cannot be started");
}

}  // namespace trireme::cuda
