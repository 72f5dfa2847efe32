// Values, gradients and optimizer state of a graph's variables in contiguous arenas: trainable variables first, by
// owner and in order of creation, so that a bucket of neighbouring gradients is a view, not a copy. Each variable has
// the layout that the first program wanted; get() and set() speak plain row-major order. Made by Session, shared by its
// programs.
#pragma once

#include <cstdint>
#include <functional>
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
  VariableStore(const Graph& graph, std::uint64_t seed);

  // Gives each variable a place and its initial value; a variable without an entry gets the plain layout. Once.
  void allocate(const VariableLayouts& layouts, const VariableOwners& owners = {});
  bool allocated() const { return !slots_.empty() || graph_.variables().empty(); }
  const VariableLayouts& layouts() const { return layouts_; }

  // Before allocate() too: values that are set then become the initial ones.
  HostTensor get(NodeId variable) const;
  void set(NodeId variable, const HostTensor& value);

  float* value(NodeId variable) const;
  // The same with its length, as it lies in memory: in its layout, with padding.
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
  // Whole arenas, to send or to compare: all values, and each array of optimizer state.
  std::span<std::byte> value_arena() const { return arena(values_); }
  std::span<std::byte> untrained_arena() const;  // the end of the former: values that are not trained
  std::vector<std::span<std::byte>> state_arenas() const;

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
  static std::span<std::byte> arena(const AlignedMemory& memory) {
    return {static_cast<std::byte*>(memory.at(0)), static_cast<std::size_t>(memory.bytes())};
  }

  const Graph& graph_;
  std::uint64_t seed_;
  VariableLayouts layouts_;
  std::unordered_map<NodeId, Slot> slots_;
  AlignedMemory values_;
  std::vector<AlignedMemory> own_gradients_;
  std::vector<std::byte*> gradients_;  // [group]
  std::function<void*(std::int64_t)> give_gradient_memory_;
  std::vector<AlignedMemory> states_;
  std::set<std::pair<NodeId, int>> initialised_states_;
  std::unordered_map<NodeId, HostTensor> assigned_;  // before there was memory
  std::uint64_t version_ = 1;
};

}  // namespace trireme
