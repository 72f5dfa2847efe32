// Values, gradients and optimizer state of a graph's variables in contiguous arenas: trainable variables first, by
// owner and in order of creation, so that a bucket of neighbouring gradients is a view, not a copy. Each variable has
// the layout that the first program wanted; get() and set() speak plain row-major order. All of it lies in the memory
// of the device that computes. Where that is not the host, each arena may have a copy on the host's side, which is what
// exchanges with other replicas work on. Made by Session, shared by its programs.
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

// Trained variables have shadows, values in another type, where the type is not f32 (see Backend::shadow_type()). A
// converter is a kernel from one format to another.
struct Shadows {
  DataType type = DataType::f32;
  std::function<std::unique_ptr<Kernel>(const TensorDesc& from, const Format& to)> converter = {};
};

class VariableStore {
 public:
  explicit VariableStore(const Graph& graph, std::uint64_t seed, ComputeDevice& device = host_device());

  // Gives each variable a place and its initial value; a variable without an entry gets the plain layout. Once.
  void allocate(const VariableLayouts& layouts, const VariableOwners& owners = {}, Shadows shadows = {});
  bool allocated() const { return !slots_.empty() || graph_.variables().empty(); }
  const VariableLayouts& layouts() const { return layouts_; }
  ComputeDevice& device() const { return device_; }

  // Before allocate() too: values that are set then become the initial ones.
  HostTensor get(NodeId variable) const;
  void set(NodeId variable, const HostTensor& value);

  // In the device's memory.
  float* value(NodeId variable) const;
  void* shadow(NodeId variable) const;  // nullptr: it has none
  // The value with its length, as it lies in memory: in its layout, with padding. Where the device is not the host, a
  // copy made now.
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
  // host, copies made now; what is written to them counts after put() of the part that was written.
  std::span<std::byte> value_arena() const { return host_view(values_); }
  std::span<std::byte> untrained_arena() const;  // the end of the former: values that are not trained
  std::vector<std::span<std::byte>> state_arenas() const;
  void put(std::span<const std::byte> written);

  // The host's side of a variable, where an exchange reads and writes: the memory itself on a host, otherwise that of
  // copies, which are brought up to date by refresh_host_side().
  float* host_value(NodeId variable) const { return host_address(values_, variable); }
  float* host_gradient(NodeId variable);
  float* host_state(NodeId variable, int index) const;
  void refresh_host_side() const;
  // Where others write variables (parameter servers), the host's side of their values and states is the one that
  // counts, from now on until an empty list is given; the device gets it by put_values().
  void set_served(const std::vector<NodeId>& variables);
  // Gives the device the values of the host's side, with their shadows, in the current stream.
  void put_values(const std::vector<NodeId>& variables);
  void put_served_values() { put_values({served_.begin(), served_.end()}); }

  // An arena like that of the values, for somebody else's array: room for a number beside each value. One variable's
  // part of it in plain order.
  AlignedMemory make_arena() const { return AlignedMemory(values_.bytes()); }
  HostTensor get_from(const AlignedMemory& arena, NodeId variable) const;
  void set_in(AlignedMemory& arena, NodeId variable, const HostTensor& value) const;

  // Who gives memory of so many bytes for the host's side of the gradients of group 0; nullptr from it: the store's
  // own. Before the first gradient() only.
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
  const DeviceMemory& host_side(const DeviceMemory& arena) const;  // its copy, whatever is in it; on a host itself
  float* host_address(const DeviceMemory& arena, NodeId variable) const;
  void download(const DeviceMemory& arena, NodeId variable) const;

  const Graph& graph_;
  std::uint64_t seed_;
  ComputeDevice& device_;
  VariableLayouts layouts_;
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
