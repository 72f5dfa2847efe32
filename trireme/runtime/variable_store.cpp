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

VariableStore::VariableStore(const Graph& graph, std::uint64_t seed, ComputeDevice& device)
    : graph_(graph), seed_(seed), device_(device) {}

void VariableStore::allocate(const VariableLayouts& layouts, const VariableOwners& owners, DataType shadow_type) {
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
  values_ = device_.allocate(offset, "variables");
  shadow_type_ = shadow_type;
  if (shadow_type_ != DataType::f32) {
    shadows_ = device_.allocate(offset / size_of(DataType::f32) * size_of(shadow_type_), "variables in another type");
  }
  for (const NodeId id : order) write(values_, id, initial_value(graph_.node(id)));
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

void* VariableStore::shadow(NodeId variable) const {
  if (shadows_.bytes() == 0 || !graph_.node(variable).as<op::Variable>()->trainable) return nullptr;
  return shadows_.at(slot(variable).offset / size_of(DataType::f32) * size_of(shadow_type_));
}

std::span<const float> VariableStore::stored(NodeId variable) const {
  const Slot& where = slot(variable);
  const auto* const arena = reinterpret_cast<const float*>(host_view(values_).data());
  return {arena + where.offset / size_of(DataType::f32),
          static_cast<std::size_t>(where.desc.layout.elements(where.desc.shape))};
}

std::span<std::byte> VariableStore::host_view(const DeviceMemory& arena) const {
  const auto bytes = static_cast<std::size_t>(arena.bytes());
  if (device_.is_host() || bytes == 0) return {static_cast<std::byte*>(arena.at(0)), bytes};
  DeviceMemory& view = host_views_[arena.at(0)];
  if (view.bytes() == 0) view = device_.allocate_staging(arena.bytes());
  device_.download(view.at(0), arena.at(0), arena.bytes());
  device_.synchronize();
  return {static_cast<std::byte*>(view.at(0)), bytes};
}

void VariableStore::put_arenas() {
  touch();
  if (device_.is_host()) return;
  const auto put = [&](const DeviceMemory& arena) {
    const auto view = host_views_.find(arena.at(0));
    if (view != host_views_.end()) device_.upload(arena.at(0), view->second.at(0), arena.bytes());
  };
  put(values_);
  for (const DeviceMemory& state : states_) put(state);
  device_.synchronize();
  for (const NodeId id : graph_.variables()) write_shadow(id);
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
  if (memory == nullptr) memory = own_gradients_.emplace_back(device_.allocate(values_.bytes(), "gradients")).at(0);
  gradients_.push_back(static_cast<std::byte*>(memory));
}

std::span<std::byte> VariableStore::untrained_arena() const {
  std::int64_t begin = values_.bytes();
  for (const auto& [id, slot] : slots_) {
    if (!graph_.node(id).as<op::Variable>()->trainable) begin = std::min(begin, slot.offset);
  }
  return host_view(values_).subspan(static_cast<std::size_t>(begin));
}

std::vector<std::span<std::byte>> VariableStore::state_arenas() const {
  std::vector<std::span<std::byte>> arenas;
  for (const DeviceMemory& state : states_) {
    if (state.bytes() > 0) arenas.push_back(host_view(state));
  }
  return arenas;
}

float* VariableStore::state(NodeId variable, int index, float initial) {
  const auto at = static_cast<std::size_t>(index);
  while (states_.size() <= at) states_.emplace_back();
  if (states_[at].bytes() == 0) states_[at] = device_.allocate(values_.bytes(), "the optimizer's state");
  const Slot& where = slot(variable);
  auto* values = static_cast<float*>(states_[at].at(where.offset));
  // Per variable: two optimizers may share an array of state, each with variables of its own.
  if (initialised_states_.emplace(variable, index).second && initial != 0) {
    const std::vector<float> filled(static_cast<std::size_t>(where.desc.layout.elements(where.desc.shape)), initial);
    device_.upload(values, filled.data(), where.desc.bytes());
    device_.synchronize();
  }
  return values;
}

int VariableStore::state_count(NodeId variable) const {
  const auto first = initialised_states_.lower_bound({variable, 0});
  const auto last = initialised_states_.lower_bound({variable + 1, 0});
  return static_cast<int>(std::distance(first, last));
}

HostTensor VariableStore::get_state(NodeId variable, int index) const {
  return read(states_.at(static_cast<std::size_t>(index)), variable);
}

void VariableStore::set_state(NodeId variable, int index, const HostTensor& value) {
  check_type(checked_variable(variable), value);
  write(states_.at(static_cast<std::size_t>(index)), variable, value);
}

HostTensor VariableStore::get(NodeId variable) const {
  return allocated() ? read(values_, variable) : initial_value(checked_variable(variable));
}

void VariableStore::set(NodeId variable, const HostTensor& value) {
  check_type(checked_variable(variable), value);
  if (!allocated()) {
    assigned_[variable] = value;
    return;
  }
  write(values_, variable, value);
  touch();
}

HostTensor VariableStore::read(const DeviceMemory& arena, NodeId variable) const {
  const Slot& where = slot(variable);
  HostTensor value(TensorType{where.desc.dtype, where.desc.shape});
  if (device_.is_host()) {
    unpack(where.desc, arena.at(where.offset), value.data());
    return value;
  }
  std::vector<std::byte> stored(static_cast<std::size_t>(where.desc.bytes()));
  device_.download(stored.data(), arena.at(where.offset), where.desc.bytes());
  device_.synchronize();
  unpack(where.desc, stored.data(), value.data());
  return value;
}

void VariableStore::write(const DeviceMemory& arena, NodeId variable, const HostTensor& value) {
  const Slot& where = slot(variable);
  if (device_.is_host()) {
    pack(where.desc, value.data(), arena.at(where.offset));
    return;
  }
  std::vector<std::byte> stored(static_cast<std::size_t>(where.desc.bytes()));
  pack(where.desc, value.data(), stored.data());
  device_.upload(arena.at(where.offset), stored.data(), where.desc.bytes());
  device_.synchronize();
  if (arena.at(0) == values_.at(0)) write_shadow(variable);
}

void VariableStore::write_shadow(NodeId variable) {
  void* const to = shadow(variable);
  if (to == nullptr) return;
  TensorDesc desc = slot(variable).desc;
  desc.dtype = shadow_type_;
  std::vector<std::byte> stored(static_cast<std::size_t>(desc.bytes()));
  pack(desc, read(values_, variable).data(), stored.data());
  device_.upload(to, stored.data(), desc.bytes());
  device_.synchronize();
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
