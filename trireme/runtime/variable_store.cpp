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
    : graph_(graph), seed_(seed), device_(device), all_(graph.variables()) {}

void VariableStore::allocate(const VariableLayouts& layouts, const VariableOwners& owners, Shadows shadows,
                             const std::set<NodeId>* own) {
  allocated_ = true;
  all_ = graph_.variables();
  is_of_stage_ = own != nullptr;
  if (is_of_stage_) std::erase_if(all_, [&](NodeId id) { return !own->contains(id); });
  std::vector<NodeId> order = all_;
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
  add_shadows(std::move(shadows));
  for (const NodeId id : order) write(values_, id, initial_value(graph_.node(id)));
  assigned_.clear();
  touch();
}

void VariableStore::add_shadows(Shadows shadows) {
  if (shadows.type == DataType::f32) return;
  shadow_type_ = shadows.type;
  shadows_ =
      device_.allocate(values_.bytes() / size_of(DataType::f32) * size_of(shadow_type_), "variables in another type");
  for (const NodeId id : trainable()) {
    const TensorDesc& desc = slot(id).desc;
    auto kernel = shadows.converter(desc, {desc.layout, shadow_type_});
    KernelMemory memory;
    memory.inputs = {value(id)};
    memory.outputs = {shadow(id)};
    kernel->bind(memory);
    shadow_kernels_[id] = std::move(kernel);
  }
}

HostTensor VariableStore::initial_value(const Node& node) const {
  if (const auto found = assigned_.find(node.id); found != assigned_.end()) return found->second;
  HostTensor value(node.outputs[0]);
  initialise(*node.as<op::Variable>(), random_key(seed_, node.name), value);
  return value;
}

const VariableStore::Slot& VariableStore::slot(NodeId variable) const {
  const auto found = slots_.find(variable);
  if (found == slots_.end() && is_of_stage_) {
    fail(ErrorKind::failed, "the variable '{}' belongs to another stage of the pipeline", graph_.node(variable).name);
  }
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
  if (!device_.is_host()) {
    download(values_, variable);
    device_.synchronize();
  }
  const TensorDesc& desc = slot(variable).desc;
  return {host_value(variable), static_cast<std::size_t>(desc.layout.elements(desc.shape))};
}

const DeviceMemory& VariableStore::host_side(const DeviceMemory& arena) const {
  if (device_.is_host()) return arena;
  DeviceMemory& side = host_sides_[arena.at(0)];
  if (side.bytes() == 0) side = device_.allocate_staging(arena.bytes());
  return side;
}

float* VariableStore::host_address(const DeviceMemory& arena, NodeId variable) const {
  return static_cast<float*>(host_side(arena).at(slot(variable).offset));
}

// To its host copy, unless that is newer.
void VariableStore::download(const DeviceMemory& arena, NodeId variable) const {
  if (served_.contains(variable)) return;
  const Slot& where = slot(variable);
  device_.download(host_address(arena, variable), arena.at(where.offset), where.desc.bytes());
}

std::span<std::byte> VariableStore::host_view(const DeviceMemory& arena) const {
  if (arena.bytes() == 0) return {};
  const DeviceMemory& side = host_side(arena);
  if (!device_.is_host()) {
    if (served_.empty()) {
      device_.download(side.at(0), arena.at(0), arena.bytes());
    } else {
      for (const NodeId id : all_) download(arena, id);
    }
    device_.synchronize();
  }
  return {static_cast<std::byte*>(side.at(0)), static_cast<std::size_t>(side.bytes())};
}

void VariableStore::put(std::span<const std::byte> written) {
  touch();
  if (device_.is_host() || written.empty()) return;
  for (const auto& [arena, side] : host_sides_) {
    const std::ptrdiff_t offset = written.data() - static_cast<const std::byte*>(side.at(0));
    if (offset < 0 || offset >= side.bytes()) continue;
    device_.upload(static_cast<std::byte*>(arena) + offset, written.data(), std::ssize(written));
  }
  for (const auto& [id, kernel] : shadow_kernels_) write_shadow(id);
  device_.synchronize();
}

void VariableStore::refresh_host_side() const {
  if (device_.is_host()) return;
  host_view(values_);
  state_arenas();
}

void VariableStore::set_served(const std::vector<NodeId>& variables) {
  if (device_.is_host()) return;
  const std::vector<NodeId> before(served_.begin(), served_.end());
  served_ = std::set<NodeId>(variables.begin(), variables.end());
  if (!served_.empty()) return;
  put_values(before);
  device_.synchronize();
}

void VariableStore::put_values(const std::vector<NodeId>& variables) {
  for (const NodeId id : variables) {
    device_.upload(value(id), host_value(id), slot(id).desc.bytes());
    write_shadow(id);
  }
}

NodeId VariableStore::find(std::string_view name) const {
  const auto found = std::find_if(all().begin(), all().end(), [&](NodeId id) { return node(id).name == name; });
  if (found == all().end()) bad_input("there is no variable '{}' among the {} of this network", name, all().size());
  return *found;
}

std::vector<NodeId> VariableStore::trainable() const {
  std::vector<NodeId> ids = all_;
  std::erase_if(ids, [this](NodeId id) { return !graph_.node(id).as<op::Variable>()->trainable; });
  return ids;
}

float* VariableStore::gradient(NodeId variable, int group) {
  while (gradients_.size() <= static_cast<std::size_t>(group)) add_gradients();
  return static_cast<float*>(gradients_[group].at(slot(variable).offset));
}

void VariableStore::add_gradients() {
  if (gradients_.empty() && device_.is_host() && give_gradient_memory_) {
    if (auto memory = give_gradient_memory_(values_.bytes())) {
      gradients_.emplace_back(std::move(memory), values_.bytes());
      return;
    }
  }
  gradients_.push_back(device_.allocate(values_.bytes(), "gradients"));
}

float* VariableStore::host_gradient(NodeId variable) {
  if (device_.is_host()) return gradient(variable);
  if (host_gradients_.bytes() == 0) {
    auto memory = give_gradient_memory_ ? give_gradient_memory_(values_.bytes()) : nullptr;
    host_gradients_ = memory != nullptr ? device_.use_as_staging(std::move(memory), values_.bytes())
                                        : device_.allocate_staging(values_.bytes());
  }
  return static_cast<float*>(host_gradients_.at(slot(variable).offset));
}

std::span<std::byte> VariableStore::untrained_arena() const {
  std::int64_t begin = values_.bytes();
  for (const auto& [id, slot] : slots_) {
    if (!graph_.node(id).as<op::Variable>()->trainable) begin = std::min(begin, slot.offset);
  }
  return host_view(values_).subspan(begin);
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
  // Per variable: two optimizers with different variables may share a state array.
  if (initialised_states_.emplace(variable, index).second && initial != 0) {
    const std::vector<float> filled(where.desc.layout.elements(where.desc.shape), initial);
    device_.upload(values, filled.data(), where.desc.bytes());
    device_.synchronize();
  }
  return values;
}

float* VariableStore::host_state(NodeId variable, int index) const { return host_address(states_.at(index), variable); }

int VariableStore::state_count(NodeId variable) const {
  const auto first = initialised_states_.lower_bound({variable, 0});
  const auto last = initialised_states_.lower_bound({variable + 1, 0});
  return static_cast<int>(std::distance(first, last));
}

HostTensor VariableStore::get_state(NodeId variable, int index) const { return read(states_.at(index), variable); }

void VariableStore::set_state(NodeId variable, int index, const HostTensor& value) {
  check_type(checked_variable(variable), value);
  write(states_.at(index), variable, value);
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
  if (!device_.is_host()) {
    download(arena, variable);
    device_.synchronize();
  }
  unpack(where.desc, host_address(arena, variable), value.data());
  return value;
}

void VariableStore::write(const DeviceMemory& arena, NodeId variable, const HostTensor& value) {
  const Slot& where = slot(variable);
  device_.synchronize();  // copies may be under way
  pack(where.desc, value.data(), host_address(arena, variable));
  if (device_.is_host()) return;
  device_.upload(arena.at(where.offset), host_address(arena, variable), where.desc.bytes());
  if (arena.at(0) == values_.at(0)) write_shadow(variable);
  device_.synchronize();
}

void VariableStore::write_shadow(NodeId variable) {
  const auto kernel = shadow_kernels_.find(variable);
  if (kernel != shadow_kernels_.end()) kernel->second->run({});
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
  bad_input("variable '{}' has shape {} of {}, but the value has {} of {}", variable.name,
            to_string(variable.outputs[0].shape), to_string(variable.outputs[0].dtype), to_string(value.shape()),
            to_string(value.type().dtype));
}

const Node& VariableStore::checked_variable(NodeId variable) const {
  const Node& node = graph_.node(variable);
  if (node.as<op::Variable>() == nullptr) bad_input("'{}' is a {}, not a variable", node.name, name_of(node.op));
  return node;
}

}  // namespace trireme
