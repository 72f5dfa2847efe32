// Values, gradients and optimizer state of a graph's variables in contiguous arenas in the compute device's memory:
// trainable variables first, by owner and creation order, so that a bucket of adjacent gradients is a view. The first
// program decides each variable's layout; get() and set() use plain row-major order. If the device is not the host, an
// arena may have a host copy for exchanges with other replicas. Made by Session, shared by its programs.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "trireme/base/aligned_memory.hpp"
#include "trireme/base/host_tensor.hpp"
#include "trireme/plan/program.hpp"

namespace trireme {

// Unless `type` is f32, trained variables have shadows in it (Backend::shadow_type()); `converter` makes the kernels.
struct Shadows {
  DataType type = DataType::f32;
  std::function<std::unique_ptr<Kernel>(const TensorDesc& from, const Format& to)> converter = {};
};

class VariableStore {
 public:
  explicit VariableStore(const Graph& graph, std::uint64_t seed, ComputeDevice& device = host_device());

  // Gives each variable memory and its initial value; without an entry, the plain layout. Once. Of several stages of a
  // pipeline, each keeps only its own variables; the store then has no others.
  void allocate(const VariableLayouts& layouts, const VariableOwners& owners = {}, Shadows shadows = {},
                const std::set<NodeId>* own = nullptr);
  bool has(NodeId variable) const { return !allocated() || slots_.contains(variable); }
  bool allocated() const { return allocated_; }
  const VariableLayouts& layouts() const { return layouts_; }
  ComputeDevice& device() const { return device_; }

  // Values set before allocate() become the initial ones.
  HostTensor get(NodeId variable) const;
  void set(NodeId variable, const HostTensor& value);

  // In device memory.
  float* value(NodeId variable) const;
  void* shadow(NodeId variable) const;  // nullptr: it has none
  // The value as stored: in its layout, with padding. If the device is not the host, a copy made now.
  std::span<const float> stored(NodeId variable) const;
  const Node& node(NodeId variable) const { return graph_.node(variable); }
  const std::vector<NodeId>& all() const { return all_; }  // in creation order
  NodeId find(std::string_view name) const;                // Error(bad_input) if there is none
  std::vector<NodeId> trainable() const;                   // in creation order
  // Allocated on first use, shaped like the values. Each group of cores has its own gradients.
  float* gradient(NodeId variable, int group = 0);
  float* state(NodeId variable, int index, float initial);
  // Optimizer state arrays of the programs prepared so far; in plain order.
  int state_count(NodeId variable) const;
  HostTensor get_state(NodeId variable, int index) const;
  void set_state(NodeId variable, int index, const HostTensor& value);
  std::int64_t bytes() const { return values_.bytes(); }
  // Whole arenas, to send or compare. If the device is not the host, copies made now; put() uploads changed parts.
  std::span<std::byte> value_arena() const { return host_view(values_); }
  std::span<std::byte> untrained_arena() const;  // its end: values that are not trained
  std::vector<std::span<std::byte>> state_arenas() const;
  void put(std::span<const std::byte> written);

  // A variable in host memory, for exchanges: on a device a copy, updated by refresh_host_side().
  float* host_value(NodeId variable) const { return host_address(values_, variable); }
  float* host_gradient(NodeId variable);
  float* host_state(NodeId variable, int index) const;
  void refresh_host_side() const;
  // For parameter servers: the host copies of these are authoritative until an empty list; put_values() uploads them.
  void set_served(const std::vector<NodeId>& variables);
  // Uploads values and shadows from the host copy, in the current stream.
  void put_values(const std::vector<NodeId>& variables);
  void put_served_values() { put_values({served_.begin(), served_.end()}); }

  // An arena shaped like the values for a caller's array, and access to a variable's part of it in plain order.
  AlignedMemory make_arena() const { return AlignedMemory(values_.bytes()); }
  HostTensor get_from(const AlignedMemory& arena, NodeId variable) const;
  void set_in(AlignedMemory& arena, NodeId variable, const HostTensor& value) const;

  // Provides host memory for the gradients of group 0; nullptr: the store's own. Set before the first gradient().
  using GiveMemory = std::function<std::shared_ptr<void>(std::int64_t)>;
  void set_gradient_memory(GiveMemory give) { give_gradient_memory_ = std::move(give); }

  std::uint64_t version() const { return version_; }  // changes whenever a value does
  void touch() { ++version_; }
  std::uint64_t step = 0;  // updates done

 private:
  struct Slot {
    TensorDesc desc;
    std::int64_t offset = 0;  // bytes
  };
  const Slot& slot(NodeId variable) const;
  const Node& checked_variable(NodeId variable) const;
  static void check_type(const Node& variable, const HostTensor& value);
  HostTensor initial_value(const Node& node) const;
  void add_gradients();
  void add_shadows(Shadows shadows);
  HostTensor read(const DeviceMemory& arena, NodeId variable) const;
  void write(const DeviceMemory& arena, NodeId variable, const HostTensor& value);
  void write_shadow(NodeId variable);
  std::span<std::byte> host_view(const DeviceMemory& arena) const;
  const DeviceMemory& host_side(const DeviceMemory& arena) const;  // its copy, possibly stale; itself on a host
  float* host_address(const DeviceMemory& arena, NodeId variable) const;
  void download(const DeviceMemory& arena, NodeId variable) const;

  const Graph& graph_;
  std::uint64_t seed_;
  ComputeDevice& device_;
  bool allocated_ = false, is_of_stage_ = false;
  VariableLayouts layouts_;
  std::vector<NodeId> all_;
  std::unordered_map<NodeId, Slot> slots_;
  DeviceMemory values_;
  DeviceMemory shadows_;
  DataType shadow_type_ = DataType::f32;
  std::unordered_map<NodeId, std::unique_ptr<Kernel>> shadow_kernels_;
  mutable std::map<void*, DeviceMemory> host_sides_;  // by the arena's first byte
  std::set<NodeId> served_;
  std::vector<DeviceMemory> gradients_;  // [group]
  DeviceMemory host_gradients_;          // of group 0
  GiveMemory give_gradient_memory_;
  std::vector<DeviceMemory> states_;
  std::set<std::pair<NodeId, int>> initialised_states_;
  std::unordered_map<NodeId, HostTensor> assigned_;  // before there was memory
  std::uint64_t version_ = 1;
};

}  // namespace trireme
