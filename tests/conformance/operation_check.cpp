#include "operation_check.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "trireme/base/bfloat16.hpp"
#include "trireme/base/float16.hpp"
#include "trireme/base/random.hpp"

namespace trireme::testkit {
namespace {

constexpr double kUnit = 0x1.0p-24;

std::string layouts_of(const KernelChoice& choice) {
  std::vector<std::string> inputs, outputs;
  for (const Format& format : choice.inputs) inputs.push_back(format.name());
  for (const Format& format : choice.outputs) outputs.push_back(format.name());
  return fmt::format("{} -> {}", fmt::join(inputs, ","), fmt::join(outputs, ","));
}

std::string details(const Operation& operation) {
  return std::visit(
      [](const auto& op) -> std::string {
        std::string text;
        if constexpr (requires { op.window; }) text += fmt::format(" window {}", op::to_string(op.window));
        if constexpr (requires { op.groups; }) text += fmt::format(" groups {}", op.groups);
        if constexpr (requires { op.kind; }) text += fmt::format(" kind {}", static_cast<int>(op.kind));
        if constexpr (requires { op.activation; }) text += op.activation == op::Activation::relu ? " relu" : "";
        if constexpr (requires { op.add; }) text += op.add ? " add" : "";
        if constexpr (requires { op.axis; }) text += fmt::format(" axis {}", op.axis);
        return text;
      },
      operation);
}

}  // namespace

double Tolerance::at(double expected) const {
  return 4 * kUnit * terms * magnitude + (16 * kUnit + relative) * std::abs(expected);
}

DataType stored_type(Precision precision) {
  switch (precision) {
    case Precision::bf16:
      return DataType::bf16;
    case Precision::fp16:
      return DataType::f16;
    case Precision::fp32:
    case Precision::tf32:
      break;
  }
  return DataType::f32;
}

Layout blocked(std::int64_t size) {
  Layout layout = Layout::plain(4);
  layout.blocks = {{1, size}};
  return layout;
}

std::vector<Variant> layout_variants() {
  return {{.name = "plain"},
          {.name = "channels_last", .activations = Layout::channels_last(4)},
          {.name = "blocked16", .activations = blocked(16)},
          {.name = "blocked8", .activations = blocked(8)}};
}

std::vector<Variant> blocked_variants() {
  return {{.name = "blocked16", .activations = blocked(16)},
          {.name = "fixed weights", .activations = blocked(16), .variables_open = false},
          {.name = "wish", .activations = blocked(16), .wish_plain = true},
          {.name = "inference", .activations = blocked(16), .training = false}};
}

std::vector<Variant> convolution_variants() {
  std::vector<Variant> variants = blocked_variants();
  variants.push_back({.name = "plain"});
  variants.push_back({.name = "channels_last", .activations = Layout::channels_last(4)});
  variants.push_back({.name = "blocked8", .activations = blocked(8)});
  variants.push_back({.name = "nchw", .format = DataFormat::nchw});
  variants.push_back({.name = "nhwc", .activations = Layout::channels_last(4), .format = DataFormat::nhwc});
  return variants;
}

OperationCase::OperationCase(Operation op, std::vector<HostTensor> values, std::vector<int> variables)
    : graph_(std::make_unique<Graph>()), values_(std::move(values)), variable_(values_.size(), false) {
  for (int i : variables) variable_[i] = true;
  for (int i : written_inputs(op, static_cast<int>(values_.size()))) variable_[i] = true;
  std::vector<Tensor> inputs;
  for (std::size_t i = 0; i < values_.size(); ++i) {
    inputs.push_back(variable_[i] ? graph_->add(op::Variable{values_[i].shape(), {}, true}, {})
                                  : graph_->add(op::Placeholder{values_[i].type()}, {}));
  }
  node_ = &graph_->node(graph_->add(std::move(op), std::move(inputs)));
}

std::string OperationCase::describe() const {
  std::vector<std::string> shapes;
  for (const HostTensor& value : values_) shapes.push_back(to_string(value.shape()));
  return fmt::format("{}{} {}", name_of(node_->op), details(node_->op), fmt::join(shapes, " "));
}

namespace {

DataType host_type(DataType stored) { return is_half(stored) ? DataType::f32 : stored; }

}  // namespace

// The host's own is taken from malloc: a sanitizer sees every step beyond it.
void* KernelRun::allocate(std::int64_t bytes, const void* value) {
  const auto size = static_cast<std::size_t>(std::max<std::int64_t>(bytes, 4));
  std::vector<std::byte> content(size, std::byte{0xFF});
  if (value != nullptr) std::memcpy(content.data(), value, bytes);
  void* data = nullptr;
  if (device_.is_host()) {
    if (posix_memalign(&data, 64, size) != 0) throw std::bad_alloc();
    memories_.emplace_back(data, std::free);
  } else {
    auto memory = std::make_shared<DeviceMemory>(device_.allocate(static_cast<std::int64_t>(size), "a test"));
    data = memory->at(0);
    memories_.push_back(std::move(memory));
  }
  device_.upload(data, content.data(), static_cast<std::int64_t>(size));
  device_.synchronize();
  return data;
}

HostTensor KernelRun::read(const TensorDesc& desc, const void* from) const {
  std::vector<std::byte> stored(desc.bytes());
  device_.download(stored.data(), from, desc.bytes());
  device_.synchronize();
  HostTensor value(TensorType{host_type(desc.dtype), desc.shape});
  unpack(desc, stored.data(), value.data());
  return value;
}

void KernelRun::run(const RunContext& context) {
  device_.set_context(context);
  choice_.kernel->run(context);
  device_.synchronize();
}

KernelRun::KernelRun(const Backend& backend, const OperationCase& operation, const Variant& variant, int in_place)
    : device_(backend.device()) {
  const Node& node = operation.node();
  KernelRequest request{.node = node,
                        .inputs = {},
                        .input_open = {},
                        .output_wish = std::vector<const Layout*>(node.outputs.size(), nullptr),
                        .data_format = variant.format,
                        .training = variant.training,
                        .precision = variant.precision};
  for (std::size_t i = 0; i < operation.values().size(); ++i) {
    const HostTensor& value = operation.values()[i];
    const int rank = value.shape().rank();
    const bool activation = rank == 4 && !operation.is_variable(i);
    const bool stored = value.type().dtype == DataType::f32 && !operation.is_variable(i) && rank >= 2;
    request.inputs.push_back({stored ? stored_type(variant.precision) : value.type().dtype, value.shape(),
                              activation ? variant.activations : Layout::plain(rank)});
    request.input_open.push_back(operation.is_variable(i) && variant.variables_open);
  }
  Layout wish;
  if (variant.wish_plain && !node.outputs.empty()) {
    wish = Layout::plain(node.outputs[0].shape.rank());
    request.output_wish[0] = &wish;
  }
  choice_ = backend.choose(request);

  for (std::size_t i = 0; i < request.inputs.size(); ++i) {
    inputs_.push_back({choice_.inputs[i].dtype, request.inputs[i].shape, choice_.inputs[i].layout});
    std::vector<std::byte> stored(inputs_.back().bytes());
    pack(inputs_.back(), operation.values()[i].data(), stored.data());
    bound_.inputs.push_back(allocate(inputs_.back().bytes(), stored.data()));
  }
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    outputs_.push_back({choice_.outputs[i].dtype, node.outputs[i].shape, choice_.outputs[i].layout});
    bound_.outputs.push_back(allocate(outputs_.back().bytes()));
  }
  if (in_place >= 0) {
    const auto [from, to] = choice_.in_place[in_place];
    bound_.outputs[to] = bound_.inputs[from];
  }
  if (const auto* apply = node.as<op::ApplyGradients>()) {
    for (std::size_t i = 1; i < inputs_.size(); i += 2) {
      auto& states = bound_.optimizer_state.emplace_back();
      states_.push_back(inputs_[i]);
      bound_.shadows.push_back(nullptr);
      for (int s = 0; s < op::state_count(apply->rule.kind); ++s) {
        const std::vector<float> values(inputs_[i].bytes() / 4, op::initial_state(apply->rule.kind, s));
        states.push_back(static_cast<float*>(allocate(inputs_[i].bytes(), values.data())));
      }
    }
  }
  bound_.scratch = allocate(choice_.scratch_bytes);
  choice_.kernel->bind(bound_);
}

HostTensor KernelRun::input(std::size_t i) const { return read(inputs_[i], bound_.inputs[i]); }

HostTensor KernelRun::output(std::size_t i) const { return read(outputs_[i], bound_.outputs[i]); }

HostTensor KernelRun::state(std::size_t pair, std::size_t i) const {
  return read(states_[pair], bound_.optimizer_state[pair][i]);
}

bool KernelRun::padding_is_zero(std::size_t i) const {
  const HostTensor value = output(i);
  std::vector<std::byte> again(outputs_[i].bytes()), stored(again.size());
  pack(outputs_[i], value.data(), again.data());
  device_.download(stored.data(), bound_.outputs[i], outputs_[i].bytes());
  device_.synchronize();
  const auto same = [&]<typename Element>(Element) {
    const auto* a = reinterpret_cast<const Element*>(again.data());
    const auto* b = reinterpret_cast<const Element*>(stored.data());
    // Compared as numbers: a kernel may leave −0, and elements that are NaN are compared elsewhere.
    return std::equal(a, a + outputs_[i].bytes() / static_cast<std::int64_t>(sizeof(Element)), b,
                      [](float x, float y) { return x == y || (std::isnan(x) && std::isnan(y)); });
  };
  if (outputs_[i].dtype == DataType::bf16) return same(BFloat16{});
  return outputs_[i].dtype == DataType::f16 ? same(Float16{}) : same(float{});
}

std::string difference(const HostTensor& actual, const HostTensor& expected, const Tolerance& tolerance) {
  for (std::size_t i = 0; i < expected.f32().size(); ++i) {
    const double a = actual.f32()[i], e = expected.f32()[i];
    if (std::isnan(a) && std::isnan(e)) continue;
    if (a == e || std::abs(a - e) <= tolerance.at(e)) continue;
    return fmt::format("element {} of {}: {:.9g}, expected {:.9g}, off by {:.3g}, allowed {:.3g}", i,
                       to_string(expected.shape()), a, e, std::abs(a - e), tolerance.at(e));
  }
  return "";
}

namespace {

// Whether all outputs are as the reference has them, in each way of sharing memory that the kernel allows.
bool same_as(KernelRun& reference, const Backend& backend, const OperationCase& operation, const Variant& variant,
             const Tolerance& tolerance) {
  int pairs = 1;
  for (int pair = -1; pair < pairs; ++pair) {
    KernelRun tested(backend, operation, variant, pair);
    pairs = static_cast<int>(tested.choice().in_place.size());
    tested.run();
    const std::string repeat =
        fmt::format("{} | variant {} | {} | {}{}", operation.describe(), variant.name, tested.choice().implementation,
                    layouts_of(tested.choice()), pair < 0 ? "" : fmt::format(" | in place {}", pair));
    for (std::size_t i = 0; i < operation.node().outputs.size(); ++i) {
      const std::string found = difference(tested.output(i), reference.output(i), tolerance);
      EXPECT_EQ(found, "") << repeat << " | output " << i;
      EXPECT_TRUE(tested.padding_is_zero(i)) << repeat << " | padding of output " << i;
      if (!found.empty()) return false;  // one line per case is enough
    }
  }
  return true;
}

Tolerance tolerance_of(const std::string& implementation, Tolerance tolerance) {
  if (implementation.find("wino") != std::string::npos) tolerance.terms *= kWinogradRounding;
  return tolerance;
}

// Names of the alternatives that the tuner may choose from, beside the first; see TuningOptions::force.
std::vector<std::string> tuned_kernels(const Operation& operation) {
  const std::string_view name = name_of(operation);
  // Ways to cuDNN, each with the first engine.
  if (name.starts_with("convolution") && tested_backend_name() == "cuda")
    return {"as_is", "8_channels", "folded", "folded_wide", "folded+fused", "folded+f32"};
  if (name.starts_with("convolution")) return {"winograd", "own_winograd", "channels_last", "in_fp32"};
  if (name.starts_with("fully_connected")) return {"own"};
  return {};
}

KernelRun run_reference(const OperationCase& operation) {
  KernelRun reference(*make_backend("reference"), operation, {.name = "reference"});
  reference.run();
  return reference;
}

// Variants in which there is a kernel of the forced name, as long as all of them are as the reference has them.
int offered_and_same(KernelRun& reference, const OperationCase& operation, const std::vector<Variant>& variants,
                     const Tolerance& tolerance, const TuningOptions& options) {
  const auto first = tested_backend(), forced = make_backend(tested_backend_name(), options);
  int offered = 0;
  for (const Variant& variant : variants) {
    const std::string implementation = KernelRun(*forced, operation, variant).choice().implementation;
    if (implementation == KernelRun(*first, operation, variant).choice().implementation) continue;
    ++offered;
    if (!same_as(reference, *forced, operation, variant, tolerance_of(implementation, tolerance))) break;
  }
  return offered;
}

}  // namespace

void expect_same(const OperationCase& operation, const std::vector<Variant>& variants, const Tolerance& tolerance) {
  const auto backend = tested_backend();
  if (!backend) GTEST_SKIP() << "this build has no oneDNN";
  KernelRun reference = run_reference(operation);
  for (const Variant& variant : variants) {
    if (!same_as(reference, *backend, operation, variant, tolerance)) return;
  }
  for (const std::string& name : tuned_kernels(operation.node().op)) {
    offered_and_same(reference, operation, variants, tolerance, {.force = name});
  }
}

int expect_same_forced(const OperationCase& operation, const std::vector<Variant>& variants, const Tolerance& tolerance,
                       const TuningOptions& options) {
  KernelRun reference = run_reference(operation);
  return offered_and_same(reference, operation, variants, tolerance, options);
}

void expect_same(const OperationCase& operation, const Tolerance& tolerance) {
  expect_same(operation, layout_variants(), tolerance);
}

std::vector<std::byte> reordered(const Backend& backend, const TensorDesc& src, const TensorDesc& dst,
                                 std::span<const std::byte> stored) {
  KernelChoice choice = backend.choose_reorder(src, dst.format());
  ComputeDevice& device = backend.device();
  const DeviceMemory from = device.allocate(src.bytes(), "a test"), to = device.allocate(dst.bytes(), "a test"),
                     scratch = device.allocate(choice.scratch_bytes + 1, "a test");
  std::vector<std::byte> result(dst.bytes(), std::byte{0xFF});
  device.upload(from.at(0), stored.data(), src.bytes());
  device.upload(to.at(0), result.data(), dst.bytes());
  KernelMemory memory;
  memory.inputs = {from.at(0)};
  memory.outputs = {to.at(0)};
  memory.scratch = scratch.at(0);
  choice.kernel->bind(memory);
  choice.kernel->run({});
  device.download(result.data(), to.at(0), dst.bytes());
  device.synchronize();
  return result;
}

HostTensor random_tensor(Shape shape, std::uint64_t seed, float low, float high) {
  HostTensor value(TensorType{DataType::f32, std::move(shape)});
  fill_uniform(value.f32(), low, high, random_key(seed, "operation_check"));
  return value;
}

HostTensor random_labels(std::int64_t count, std::int32_t classes, std::uint64_t seed) {
  HostTensor value(TensorType{DataType::i32, {count}});
  fill_uniform(value.i32(), classes, random_key(seed, "labels"));
  return value;
}

std::string tested_backend_name() {
  const char* const named = std::getenv("TRIREME_TESTED_BACKEND");
  return named == nullptr ? "onednn" : named;
}

std::shared_ptr<Backend> tested_backend() {
  const auto names = backend_names();
  if (std::find(names.begin(), names.end(), tested_backend_name()) == names.end()) return nullptr;
  return make_backend(tested_backend_name());
}

}  // namespace trireme::testkit
