// Values, gradients and optimizer state of a graph's variables in contiguous arenas: trainable variables first, by
// owner and in order of creation, so that a bucket of neighbouring gradients is a view, not a copy. Each variable has
// the layout that the first program wanted; get() and set() speak plain row-major order. All of it lies in the memory
// of the device that computes. Made by Session, shared by its programs.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "trireme/base/aligned_memory.hpp"
#include "trireme/base/host_tensor.hpp"
#include "trireme/plan/program.hpp"

namespace trireme {

class VariableStore {
 public:
  explicit VariableStore(const Graph& graph, std::uint64_t seed, ComputeDevice& device = host_device());

  // Gives each variable a place and its initial value; a variable without an entry gets the plain layout. Where the
  // shadow type is not f32, trainable ones get a shadow too. Once.
  void allocate(const VariableLayouts& layouts, const VariableOwners& owners = {},
                DataType shadow_type = DataType::f32);
  bool allocated() const { return !slots_.empty() || graph_.variables().empty(); }
  const VariableLayouts& layouts() const { return layouts_; }
  ComputeDevice& device() const { return device_; }

  // Before allocate() too: values that are set then become the initial ones.
  HostTensor get(NodeId variable) const;
  void set(NodeId variable, const HostTensor& value);

  // In the device's memory.
  float* value(NodeId variable) const;
  void* shadow(NodeId variable) const;  // nullptr: it has none
  // The value with its length, as it lies in memory: in its layout, with padding. Where the device is not the host, the
  // part of a copy: see value_arena().
  std::span<const float> stored(NodeId variable) const;
  const Node& node(NodeId variable) const { return graph_.node(variable); }
  const std::vector<NodeId>& all() const { return graph_.variables(); }  // in order of creation
  NodeId find(std::string_view name) const;  // Error(bad_input) where there is none of this name
  std::vector<NodeId> trainable() const;     // likewise
  // Arenas of the same shape, made on first use. Each group of cores that a batch is split over has gradients of its
  // own.
  float* gradient(NodeId variable, int group = 0);
  float* state(NodeId variable, int index, float initial);
  // Arrays of optimizer state that the programs prepared so far keep beside a variable; in plain order.
  int state_count(NodeId variable) const;
  HostTensor get_state(NodeId variable, int index) const;
  void set_state(NodeId variable, int index, const HostTensor& value);
  std::int64_t bytes() const { return values_.bytes(); }
  // Whole arenas, to send or to compare: all values, and each array of optimizer state. Where the device is not the
  // host, copies made now, until the next call for the same; what is written to them counts after put_arenas().
  std::span<std::byte> value_arena() const { return host_view(values_); }
  std::span<std::byte> untrained_arena() const;  // the end of the former: values that are not trained
  std::vector<std::span<std::byte>> state_arenas() const;
  void put_arenas();

  // An arena like that of the values, for somebody else's array: room for a number beside each value. One variable's
  // part of it in plain order.
  AlignedMemory make_arena() const { return AlignedMemory(values_.bytes()); }
  HostTensor get_from(const AlignedMemory& arena, NodeId variable) const;
  void set_in(AlignedMemory& arena, NodeId variable, const HostTensor& value) const;

  // Who gives memory of so many bytes for the gradients of group 0; nullptr from it: the store's own. Before the first
  // gradient() only.
  void set_gradient_memory(std::function<void*(std::int64_t)> give) { give_gradient_memory_ = std::move(give); }

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
  HostTensor read(const DeviceMemory& arena, NodeId variable) const;
  void write(const DeviceMemory& arena, NodeId variable, const HostTensor& value);
  void write_shadow(NodeId variable);
  std::span<std::byte> host_view(const DeviceMemory& arena) const;

  const Graph& graph_;
  std::uint64_t seed_;
  ComputeDevice& device_;
  VariableLayouts layouts_;
  std::unordered_map<NodeId, Slot> slots_;
  DeviceMemory values_;
  DeviceMemory shadows_;
  DataType shadow_type_ = DataType::f32;
  mutable std::map<const void*, DeviceMemory> host_views_;  // by the arena's first byte
  std::vector<DeviceMemory> own_gradients_;
  std::vector<std::byte*> gradients_;  // [group]
  std::function<void*(std::int64_t)> give_gradient_memory_;
  std::vector<DeviceMemory> states_;
  std::set<std::pair<NodeId, int>> initialised_states_;
  std::unordered_map<NodeId, HostTensor> assigned_;  // before there was memory
  std::uint64_t version_ = 1;
};

}  // namespace trireme
