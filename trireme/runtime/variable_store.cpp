#include "trireme/runtime/variable_store.hpp"

#include <algorithm>
#include <cstring>

#include "trireme/base/error.hpp"
#include "trireme/base/random.hpp"

namespace trireme {
namespace {

constexpr std::int64_t kAlignment = 64;

void initialise(const op::Variable& variable, std::uint64_t key, HostTensor& value) {
  using Kind = op::Initializer::Kind;
  const op::Initializer& how = variable.initializer;
  switch (how.kind) {
    case Kind::constant: std::fill(value.f32().begin(), value.f32().end(), how.mean); break;
    case Kind::truncated_normal: fill_truncated_normal(value.f32(), how.mean, how.stddev, key); break;
    case Kind::uniform: fill_uniform(value.f32(), how.mean, how.stddev, key); break;
  }
}

}  // namespace

VariableStore::VariableStore(const Graph& graph, std::uint64_t seed) : graph_(graph), seed_(seed) {}

void VariableStore::allocate(const VariableLayouts& layouts) {
  std::vector<NodeId> order = graph_.variables();
  std::stable_partition(order.begin(), order.end(), [&](NodeId id) { return graph_.node(id).as<op::Variable>()->trainable; });
  std::int64_t offset = 0;
  for (const NodeId id : order) {
    const Shape& shape = graph_.node(id).outputs[0].shape;
    const auto found = layouts.find(id);
    Slot slot{{DataType::f32, shape, found == layouts.end() ? Layout::plain(shape.rank()) : found->second}, offset};
    layouts_[id] = slot.desc.layout;
    offset += (slot.desc.bytes() + kAlignment - 1) / kAlignment * kAlignment;
    slots_.emplace(id, std::move(slot));
  }
  values_ = AlignedMemory(offset);
  for (const NodeId id : order) {
    const Node& node = graph_.node(id);
    HostTensor value(node.outputs[0]);
    initialise(*node.as<op::Variable>(), random_key(seed_, node.name), value);
    set(id, value);
  }
}

const VariableStore::Slot& VariableStore::slot(NodeId variable) const {
  const auto found = slots_.find(variable);
  if (found == slots_.end()) {
    bad_input("'{}' is no variable of this session: it is not one, or was added to the graph after the first run",
              graph_.node(variable).name);
  }
  return found->second;
}

float* VariableStore::value(NodeId variable) const { return static_cast<float*>(values_.at(slot(variable).offset)); }

float* VariableStore::gradient(NodeId variable) {
  if (gradients_.bytes() == 0) gradients_ = AlignedMemory(values_.bytes());
  return static_cast<float*>(gradients_.at(slot(variable).offset));
}

float* VariableStore::state(NodeId variable, int index, float initial) {
  const auto at = static_cast<std::size_t>(index);
  while (states_.size() <= at) states_.emplace_back();
  if (states_[at].bytes() == 0) {
    states_[at] = AlignedMemory(values_.bytes());
    auto* values = static_cast<float*>(states_[at].at(0));
    if (initial != 0) std::fill(values, values + values_.bytes() / 4, initial);
  }
  return static_cast<float*>(states_[at].at(slot(variable).offset));
}

HostTensor VariableStore::get(NodeId variable) const {
  const Slot& from = slot(variable);
  HostTensor value(TensorType{from.desc.dtype, from.desc.shape});
  unpack(from.desc, values_.at(from.offset), value.data());
  return value;
}

void VariableStore::set(NodeId variable, const HostTensor& value) {
  const Slot& to = slot(variable);
  if (value.type() != TensorType{to.desc.dtype, to.desc.shape}) {
    bad_input("variable '{}' has shape {} of {}, the value {} of {}", graph_.node(variable).name, to_string(to.desc.shape),
              to_string(to.desc.dtype), to_string(value.shape()), to_string(value.type().dtype));
  }
  pack(to.desc, value.data(), values_.at(to.offset));
  touch();
}

}  // namespace trireme
