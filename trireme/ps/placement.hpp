// Assigns variables to parameter servers. Computed by `trireme models --ps` and by every task of a job with servers;
// the result depends only on graph, strategy and number of servers, so all agree.
//
// Only trainable variables are placed, in creation order. A device that names a task (/job:ps/task:1) overrides the
// strategy; such variables count in the loads before the others are placed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/graph/graph.hpp"
#include "trireme/plan/program.hpp"

namespace trireme::ps {

enum class Strategy : std::uint8_t {
  round_robin,  // in turn, in creation order: TensorFlow's default
  greedy,       // to the server with the fewest bytes so far, in creation order; TensorFlow's alternative
  split,        // large variables are cut into a piece per server, so that all hold the same bytes
};
std::string_view to_string(Strategy strategy);
// "round_robin", "greedy", "split"; otherwise Error(bad_input) listing them.
Strategy parse_strategy(std::string_view name);

// Pieces start at multiples of this many elements: 64 bytes, one cache line or vector.
inline constexpr std::int64_t kCutAlignment = 16;

struct ElementRange {  // half-open
  std::int64_t begin = 0, end = 0;
  std::int64_t count() const { return end - begin; }
  bool operator==(const ElementRange&) const = default;
};

struct PlacedVariable {
  NodeId node = -1;
  std::string name;
  Shape shape;
  int server = -1;                   // -1: cut
  std::vector<ElementRange> pieces;  // of a cut variable, by server; may be empty

  std::int64_t elements() const { return shape.elements(); }
  std::int64_t bytes() const { return elements() * size_of(DataType::f32); }
};

struct ServerLoad {
  std::int64_t elements = 0;
  int variables = 0;  // whole ones
  int pieces = 0;     // of cut variables
  std::int64_t bytes() const { return elements * size_of(DataType::f32); }
};

class Placement {
 public:
  // Error(bad_input) without servers or trainable variables, or for a device that is not the CPU of a server.
  Placement(const Graph& graph, Strategy strategy, int servers);
  // For the compiler: variables of one server are adjacent in memory; a cut variable is on its own.
  VariableOwners owners() const;

  Strategy strategy() const { return strategy_; }
  int servers() const { return static_cast<int>(loads_.size()); }
  const std::vector<PlacedVariable>& variables() const { return variables_; }
  const std::vector<ServerLoad>& loads() const { return loads_; }
  double imbalance() const;  // largest load over mean load

  int server_of(std::size_t variable) const { return variables_[variable].server; }
  // Each server's part of a variable stored in this many elements, which exceed its own if the layout is padded. Ranges
  // are consecutive, start at multiples of kCutAlignment and cover all elements once.
  std::vector<ElementRange> cuts(std::size_t variable, std::int64_t stored_elements) const;

 private:
  void assign(PlacedVariable& variable, int server);
  void cut(PlacedVariable& variable);
  void place_by_strategy(const std::vector<std::size_t>& free);

  Strategy strategy_;
  std::vector<PlacedVariable> variables_;
  std::vector<ServerLoad> loads_;
};

}  // namespace trireme::ps
