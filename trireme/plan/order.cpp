#include <algorithm>
#include <tuple>
#include <unordered_map>

#include "trireme/base/error.hpp"
#include "trireme/plan/passes.hpp"

namespace trireme {
namespace {

// Where a node runs: after the node `after` (itself, except for updates), and behind `level` other updates there.
struct Place {
  NodeId after = -1;
  int level = 0;
  auto key() const { return std::tuple(after, level); }
};

class Order {
 public:
  explicit Order(const Graph& graph) : graph_(graph), readers_(graph.nodes().size()) {
    for (const Node& node : graph.nodes()) {
      const auto written = written_inputs(node.op, static_cast<int>(node.inputs.size()));
      for (int i = 0; i < std::ssize(node.inputs); ++i) {
        const NodeId input = node.inputs[i].node;
        if (std::find(written.begin(), written.end(), i) == written.end()) {
          readers_[input].push_back(node.id);
        } else if (auto [first, is_new] = writer_.emplace(input, node.id); !is_new) {
          bad_input("variable '{}' is updated twice in one run, by '{}' and '{}'; fetch one update at a time",
                    graph.node(input).name, graph.node(first->second).name, node.name);
        }
      }
    }
  }

  std::vector<NodeId> run() {
    std::vector<std::tuple<NodeId, int, NodeId>> keyed;
    for (const Node& node : graph_.nodes())
      keyed.push_back(std::tuple_cat(place_of(node.id).key(), std::tuple(node.id)));
    std::sort(keyed.begin(), keyed.end());
    std::vector<NodeId> order;
    for (const auto& [after, level, id] : keyed) order.push_back(id);
    return order;
  }

 private:
  Place place_of(NodeId id) {
    const Node& node = graph_.node(id);
    if (!is_update(node.op)) return {id, 0};
    if (const auto known = places_.find(id); known != places_.end()) {
      if (known->second.after < 0) {
        bad_input(
            "update '{}' reads a variable whose update, in turn, depends on what '{}' writes; run them one after the "
            "other",
            node.name, node.name);
      }
      return known->second;
    }
    places_[id] = {};  // in progress
    Place place{0, 1};
    auto behind = [&](const Place& other) {
      const Place next{other.after, other.level + 1};
      if (next.key() > place.key()) place = next;
    };
    for (const Tensor& input : node.inputs) behind({input.node, 0});
    for (const int i : written_inputs(node.op, static_cast<int>(node.inputs.size()))) {
      for (const NodeId reader : readers_[node.inputs[i].node]) {
        if (reader != id) behind(place_of(reader));
      }
    }
    return places_[id] = place;
  }

  const Graph& graph_;
  std::vector<std::vector<NodeId>> readers_;  // per node, except those that write it
  std::unordered_map<NodeId, NodeId> writer_;
  std::unordered_map<NodeId, Place> places_;  // of updates
};

}  // namespace

std::vector<NodeId> execution_order(const Graph& graph) { return Order(graph).run(); }

}  // namespace trireme
