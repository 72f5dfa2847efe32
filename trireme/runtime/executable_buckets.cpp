// The part of Executable that says what an exchange works on.
#include <algorithm>

#include "trireme/base/error.hpp"
#include "trireme/runtime/executable.hpp"

namespace trireme {
namespace {

// Shadows are written with their variables.
bool is_of_variable(const Buffer& buffer) {
  return buffer.kind == MemoryKind::variable || buffer.kind == MemoryKind::shadow;
}

// Adds memory to the end of the last part where only padding lies between them, which is zero in all replicas.
void add_part(std::vector<std::span<float>>& parts, std::span<float> part) {
  constexpr std::ptrdiff_t kPadding = 64 / sizeof(float);  // the store's alignment
  if (!parts.empty()) {
    const auto after = part.data() - (parts.back().data() + parts.back().size());
    const auto before = parts.back().data() - (part.data() + part.size());
    if (after >= 0 && after < kPadding) {
      parts.back() = {parts.back().data(), part.data() + part.size()};
      return;
    }
    if (before >= 0 && before < kPadding) {
      parts.back() = {part.data(), parts.back().data() + parts.back().size()};
      return;
    }
  }
  parts.push_back(part);
}

}  // namespace

std::vector<GradientBucket> Executable::gradient_buckets(MemorySide side) const {
  const bool on_host = side == MemorySide::host;
  if (on_host) store_.refresh_host_side();
  std::vector<GradientBucket> buckets;
  for (const Instruction& instruction : program_.instructions) {
    if (!applies_gradients(instruction)) continue;
    GradientBucket& bucket = buckets.emplace_back();
    bucket.name = instruction.name;
    bucket.rule = instruction.node->as<op::ApplyGradients>()->rule;
    bucket.learning_rate = static_cast<const float*>(host_address(instruction.inputs[0]));
    bucket.states.resize(op::state_count(bucket.rule.kind));
    for (std::size_t i = 2; i < instruction.inputs.size(); i += 2) {
      const Buffer& gradient = program_.buffers[instruction.inputs[i]];
      if (gradient.kind != MemoryKind::gradient) {
        fail(ErrorKind::failed, "a gradient of '{}' serves several variables and cannot be exchanged with replicas",
             instruction.name);
      }
      const auto elements = static_cast<std::size_t>(gradient.bytes) / sizeof(float);
      const NodeId variable = gradient.variable;
      add_part(bucket.parts, {on_host ? store_.host_gradient(variable) : store_.gradient(variable), elements});
      add_part(bucket.values, {on_host ? store_.host_value(variable) : store_.value(variable), elements});
      for (std::size_t array = 0; array < bucket.states.size(); ++array) {
        const int index = static_cast<int>(array);
        float* state = on_host ? store_.host_state(variable, index)
                               : store_.state(variable, index, op::initial_state(bucket.rule.kind, index));
        add_part(bucket.states[array], {state, elements});
      }
      bucket.variables.push_back(variable);
    }
    bucket.first_use = first_use(bucket.variables);
  }
  return buckets;
}

int Executable::first_use(const std::vector<NodeId>& variables) const {
  for (std::size_t i = 0; i < program_.instructions.size(); ++i) {
    for (const int id : program_.instructions[i].inputs) {
      const Buffer& buffer = program_.buffers[id];
      const bool is_one = std::find(variables.begin(), variables.end(), buffer.variable) != variables.end();
      if (!program_.instructions[i].once && is_of_variable(buffer) && is_one) return static_cast<int>(i);
    }
  }
  return 0;
}

}  // namespace trireme
