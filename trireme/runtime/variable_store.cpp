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

NodeId VariableStore::find(std::string_view name) const {
  const auto found = std::find_if(all().begin(), all().end(), [&](NodeId id) { return node(id).name == name; });
  if (found == all().end()) bad_input("there is no variable '{}' among the {} of this network", name, all().size());
  return *found;
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

std::span<std::byte> VariableStore::untrained_arena() const {
  std::int64_t begin = values_.bytes();
  for (const auto& [id, slot] : slots_) {
    if (!graph_.node(id).as<op::Variable>()->trainable) begin = std::min(begin, slot.offset);
  }
  return arena(values_).subspan(static_cast<std::size_t>(begin));
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

int VariableStore::state_count(NodeId variable) const {
  const auto first = initialised_states_.lower_bound({variable, 0});
  const auto last = initialised_states_.lower_bound({variable + 1, 0});
  return static_cast<int>(std::distance(first, last));
}

HostTensor VariableStore::get_state(NodeId variable, int index) const {
  return get_from(states_.at(static_cast<std::size_t>(index)), variable);
}

void VariableStore::set_state(NodeId variable, int index, const HostTensor& value) {
  set_in(states_.at(static_cast<std::size_t>(index)), variable, value);
}

HostTensor VariableStore::get(NodeId variable) const {
  return allocated() ? get_from(values_, variable) : initial_value(checked_variable(variable));
}

void VariableStore::set(NodeId variable, const HostTensor& value) {
  check_type(checked_variable(variable), value);
  if (!allocated()) {
    assigned_[variable] = value;
    return;
  }
  set_in(values_, variable, value);
  touch();
}

HostTensor VariableStore::get_from(const AlignedMemory& arena, NodeId variable) const {
  const Slot& where = slot(variable);
  HostTensor value(TensorType{where.desc.dtype, where.desc.shape});
  unpack(where.desc, arena.at(where.offset), value.data());
  return value;
}

void VariableStore::set_in(AlignedMemory& arena, NodeId variable, const HostTensor& value) const {
  check_type(checked_variable(variable), value);
  const Slot& where = slot(variable);
  pack(where.desc, value.data(), arena.at(where.offset));
}

void VariableStore::check_type(const Node& variable, const HostTensor& value) {
  if (value.type() == variable.outputs[0]) return;
  bad_input("variable '{}' has shape {} of {}, the value {} of {}", variable.name, to_string(variable.outputs[0].shape),
            to_string(variable.outputs[0].dtype), to_string(value.shape()), to_string(value.type().dtype));
}

const Node& VariableStore::checked_variable(NodeId variable) const {
  const Node& node = graph_.node(variable);
  if (node.as<op::Variable>() == nullptr) bad_input("'{}' is a {}, no variable", node.name, name_of(node.op));
  return node;
}

}  // namespace trireme
