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
    case Kind::constant:
      std::fill(value.f32().begin(), value.f32().end(), how.mean);
      break;
    case Kind::truncated_normal:
      fill_truncated_normal(value.f32(), how.mean, how.stddev, key);
      break;
    case Kind::uniform:
      fill_uniform(value.f32(), how.mean, how.stddev, key);
      break;
  }
}

}  // namespace

VariableStore::VariableStore(const Graph& graph, std::uint64_t seed) : graph_(graph), seed_(seed) {}

void VariableStore::allocate(const VariableLayouts& layouts, const VariableOwners& owners) {
  std::vector<NodeId> order = graph_.variables();
  const auto place = [&](NodeId id) {
    const auto owner = owners.find(id);
    return std::pair(!graph_.node(id).as<op::Variable>()->trainable, owner == owners.end() ? -1 : owner->second);
  };
  std::stable_sort(order.begin(), order.end(), [&](NodeId a, NodeId b) { return place(a) < place(b); });
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
    const Slot& to = slots_.at(id);
    pack(to.desc, initial_value(node).data(), values_.at(to.offset));
  }
  assigned_.clear();
  touch();
}

HostTensor VariableStore::initial_value(const Node& node) const {
  if (const auto found = assigned_.find(node.id); found != assigned_.end()) return found->second;
  HostTensor value(node.outputs[0]);
  initialise(*node.as<op::Variable>(), random_key(seed_, node.name), value);
  return value;
}

const VariableStore::Slot& VariableStore::slot(NodeId variable) const {
  const auto found = slots_.find(variable);
  if (found == slots_.end()) {
    bad_input("variable '{}' was added to the graph after the session's first run; build the whole graph first",
              graph_.node(variable).name);
  }
  return found->second;
}

float* VariableStore::value(NodeId variable) const { return static_cast<float*>(values_.at(slot(variable).offset)); }

std::span<const float> VariableStore::stored(NodeId variable) const {
  const TensorDesc& desc = slot(variable).desc;
  return {value(variable), static_cast<std::size_t>(desc.layout.elements(desc.shape))};
}

std::vector<NodeId> VariableStore::trainable() const {
  std::vector<NodeId> ids = graph_.variables();
  std::erase_if(ids, [this](NodeId id) { return !graph_.node(id).as<op::Variable>()->trainable; });
  return ids;
}

float* VariableStore::gradient(NodeId variable, int group) {
  while (gradients_.size() <= static_cast<std::size_t>(group)) add_gradients();
  return reinterpret_cast<float*>(gradients_[static_cast<std::size_t>(group)] + slot(variable).offset);
}

void VariableStore::add_gradients() {
  void* memory = gradients_.empty() && give_gradient_memory_ ? give_gradient_memory_(values_.bytes()) : nullptr;
  if (memory == nullptr) memory = own_gradients_.emplace_back(values_.bytes()).at(0);
  gradients_.push_back(static_cast<std::byte*>(memory));
}

std::vector<std::span<std::byte>> VariableStore::state_arenas() const {
  std::vector<std::span<std::byte>> arenas;
  for (const AlignedMemory& state : states_) {
    if (state.bytes() > 0) arenas.push_back(arena(state));
  }
  return arenas;
}

float* VariableStore::state(NodeId variable, int index, float initial) {
  const auto at = static_cast<std::size_t>(index);
  while (states_.size() <= at) states_.emplace_back();
  if (states_[at].bytes() == 0) states_[at] = AlignedMemory(values_.bytes());
  const Slot& where = slot(variable);
  auto* values = static_cast<float*>(states_[at].at(where.offset));
  // Per variable: two optimizers may share an array of state, each with variables of its own.
  if (initialised_states_.emplace(variable, index).second && initial != 0) {
    std::fill(values, values + where.desc.layout.elements(where.desc.shape), initial);
  }
  return values;
}

HostTensor VariableStore::get(NodeId variable) const {
  if (!allocated()) return initial_value(checked_variable(variable));
  const Slot& from = slot(variable);
  HostTensor value(TensorType{from.desc.dtype, from.desc.shape});
  unpack(from.desc, values_.at(from.offset), value.data());
  return value;
}

void VariableStore::set(NodeId variable, const HostTensor& value) {
  const Node& node = checked_variable(variable);
  if (value.type() != node.outputs[0]) {
    bad_input("variable '{}' has shape {} of {}, the value {} of {}", node.name, to_string(node.outputs[0].shape),
              to_string(node.outputs[0].dtype), to_string(value.shape()), to_string(value.type().dtype));
  }
  if (!allocated()) {
    assigned_[variable] = value;
    return;
  }
  const Slot& to = slot(variable);
  pack(to.desc, value.data(), values_.at(to.offset));
  touch();
}

const Node& VariableStore::checked_variable(NodeId variable) const {
  const Node& node = graph_.node(variable);
  if (node.as<op::Variable>() == nullptr) bad_input("'{}' is a {}, no variable", node.name, name_of(node.op));
  return node;
}

}  // namespace trireme
