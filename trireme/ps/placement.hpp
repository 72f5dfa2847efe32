// Which parameter server holds which variable. Made from a graph by `trireme models --ps` and by every task of a job
// with servers; all of them come to the same result, since it depends on the graph, the strategy and the number of
// servers alone.
//
// Only trainable variables live on servers, in order of creation here. A variable whose device names a task
// (/job:ps/task:1) is held by that server, whatever the strategy; these count in the loads before all others are
// placed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/graph/graph.hpp"
#include "trireme/plan/program.hpp"

namespace trireme::ps {

enum class Strategy : std::uint8_t {
  round_robin,  // one server after the other, in order of creation: TensorFlow's default
  greedy,       // each, in order of creation, to the server with the fewest bytes so far; TensorFlow's other one
  split,        // large variables are cut into a piece per server, so that all carry the same bytes
};
std::string_view to_string(Strategy strategy);
// "round_robin", "greedy", "split"; anything else is Error(bad_input) that lists them.
Strategy parse_strategy(std::string_view name);

// Pieces of cut variables begin at multiples of this: 64 bytes, a line of the cache and a whole vector.
inline constexpr std::int64_t kCutAlignment = 16;

// Elements of a variable, from begin up to end.
struct ElementRange {
  std::int64_t begin = 0, end = 0;
  std::int64_t count() const { return end - begin; }
  bool operator==(const ElementRange&) const = default;
};

struct PlacedVariable {
  NodeId node = -1;
  std::string name;
  Shape shape;
  int server = -1;                   // -1: cut
  std::vector<ElementRange> pieces;  // of a cut variable, by server; those of servers without a piece are empty

  std::int64_t elements() const { return shape.elements(); }
  std::int64_t bytes() const { return elements() * size_of(DataType::f32); }
};

struct ServerLoad {
  std::int64_t elements = 0;
  int variables = 0;  // held as a whole
  int pieces = 0;     // of cut variables
  std::int64_t bytes() const { return elements * size_of(DataType::f32); }
};

class Placement {
 public:
  // Throws Error(bad_input) for less than one server, for a graph without trainable variables, and for a variable whose
  // device is no server's CPU or a server that does not exist.
  Placement(const Graph& graph, Strategy strategy, int servers);
  // For the compiler: what one server has lies together in memory; a variable that is cut lies by itself.
  VariableOwners owners() const;

  Strategy strategy() const { return strategy_; }
  int servers() const { return static_cast<int>(loads_.size()); }
  const std::vector<PlacedVariable>& variables() const { return variables_; }
  const std::vector<ServerLoad>& loads() const { return loads_; }
  // The largest load over the mean: 1 where all servers carry the same.
  double imbalance() const;

  // By position in variables(). -1: it is cut.
  int server_of(std::size_t variable) const { return variables_[variable].server; }
  // What each server holds of a variable that is stored in this many elements, which are more than its own where its
  // layout is padded. Ranges follow each other, begin at multiples of kCutAlignment and cover all elements once.
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
