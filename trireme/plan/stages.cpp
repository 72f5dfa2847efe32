#include "trireme/plan/stages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "trireme/base/error.hpp"
#include "trireme/base/nearest_name.hpp"

namespace trireme {
namespace {

class Divider {
 public:
  Divider(const Graph& graph, const std::vector<std::string>& cuts, const std::unordered_map<NodeId, NodeId>& copies)
      : graph_(graph), cuts_(cuts), copies_(copies), parts_{std::vector<Parts::Place>(graph.nodes().size())} {
    const std::size_t count = graph.nodes().size();
    constant_.assign(count, false);
    backward_.assign(count, false);
    consumers_.resize(count);
    for (const Node& node : graph.nodes()) {
      for (const Tensor& input : node.inputs) consumers_[index(input)].push_back(node.id);
    }
  }

  Parts run() {
    find_kinds();
    place_forward();
    place_variables();
    place_weights();
    place_backward();
    place_updates();
    return std::move(parts_);
  }

 private:
  static std::size_t index(NodeId id) { return static_cast<std::size_t>(id); }
  static std::size_t index(Tensor tensor) { return index(tensor.node); }
  Parts::Place& place(NodeId id) { return parts_.nodes[index(id)]; }

  void find_kinds() {
    for (const Node& node : graph_.nodes()) {
      if (node.as<op::Constant>() != nullptr) constant_[index(node.id)] = true;
      if (is_source(node) || is_update(node.op)) continue;
      const auto is = [](const std::vector<bool>& kind) {
        return [&kind](const Tensor& input) { return kind[index(input)]; };
      };
      constant_[index(node.id)] =
          node.as<op::Dropout>() == nullptr && std::all_of(node.inputs.begin(), node.inputs.end(), is(constant_));
      backward_[index(node.id)] =
          is_backward(node.op) || std::any_of(node.inputs.begin(), node.inputs.end(), is(backward_));
    }
  }
  bool is_forward(const Node& node) const {
    return !is_source(node) && !constant_[index(node.id)] && !backward_[index(node.id)] && !is_update(node.op) &&
           !copies_.contains(node.id);
  }

  // By position.
  void place_forward() {
    std::size_t part = 0;
    for (const Node& node : graph_.nodes()) {
      if (!is_forward(node)) continue;
      if (part < cuts_.size() && node.name == cuts_[part]) ++part;
      place(node.id).part = static_cast<int>(part);
    }
    if (part < cuts_.size()) refuse(cuts_[part]);
  }
  [[noreturn]] void refuse(const std::string& cut) const {
    std::vector<std::string> names;
    for (const Node& node : graph_.nodes()) {
      if (is_forward(node)) names.push_back(node.name);
    }
    bad_input(
        "a part of the pipeline cannot begin at '{}': parts begin at operations of forward, as they are after "
        "fusing, in their order{}",
        cut, suggestion(cut, names));
  }

  void place_variables() {
    for (const Node& node : graph_.nodes()) {
      if (!is_forward(node)) continue;
      for (const Tensor& input : node.inputs) {
        if (graph_.node(input).as<op::Variable>() == nullptr) continue;
        int& part = place(input.node).part;
        const int reader = place(node.id).part;
        if (part >= 0 && part != reader) {
          bad_input("the variable '{}' is used by the parts {} and {} of the pipeline; its users have to be in one",
                    graph_.node(input).name, part, reader);
        }
        part = reader;
      }
    }
  }

  // What updates alone read.
  void place_weights() {
    for (const Node& node : graph_.nodes()) {
      const auto& consumers = consumers_[index(node.id)];
      if (!backward_[index(node.id)] || consumers.empty()) continue;
      int part = -1;
      const bool all = std::all_of(consumers.begin(), consumers.end(), [&](NodeId id) {
        const Node& consumer = graph_.node(id);
        if (consumer.as<op::ApplyGradients>() == nullptr) return false;
        for (std::size_t i = 2; i < consumer.inputs.size(); i += 2) {
          if (consumer.inputs[i].node == node.id) part = place(consumer.inputs[i - 1].node).part;
        }
        return true;
      });
      if (all && part >= 0) place(node.id) = {part, Phase::weights};
    }
  }

  // Where the forward values are that it reads, but not after a gradient that it reads.
  void place_backward() {
    for (const Node& node : graph_.nodes()) {
      Parts::Place& own = place(node.id);
      if (const auto copy = copies_.find(node.id); copy != copies_.end())
        own = {place(copy->second).part, Phase::backward};
      if (!backward_[index(node.id)] || constant_[index(node.id)] || own.phase == Phase::weights) continue;
      int values = -1, gradients = std::numeric_limits<int>::max();
      for (const Tensor& input : node.inputs) {
        const int part = place(input.node).part;
        if (part < 0) continue;
        if (backward_[index(input)]) {
          gradients = std::min(gradients, part);
        } else {
          values = std::max(values, part);
        }
      }
      own.phase = Phase::backward;
      own.part = values < 0 ? gradients : std::min(values, gradients);
      if (own.part == std::numeric_limits<int>::max()) own.part = static_cast<int>(cuts_.size());
    }
  }

  // With the variable, or, for running statistics, with what is averaged.
  void place_updates() {
    for (const Node& node : graph_.nodes()) {
      if (!is_update(node.op)) continue;
      if (node.as<op::ApplyGradients>() == nullptr && node.as<op::MovingAverage>() == nullptr) {
        bad_input("'{}' needs the gradients of the whole network, which no stage of a pipeline has", node.name);
      }
      const bool applies = node.as<op::ApplyGradients>() != nullptr;
      int part = -1;
      for (const Tensor& input : node.inputs) part = std::max(part, place(input.node).part);
      // A gradient that is complete with those of the inputs is added up before the next micro-batch's.
      Phase phase = Phase::forward;
      for (std::size_t i = 2; applies && i < node.inputs.size(); i += 2) {
        phase = place(node.inputs[i].node).phase == Phase::weights ? Phase::weights : Phase::backward;
        place(node.inputs[i - 1].node).phase = phase;
      }
      place(node.id) = {part, phase};
      for (const int written : written_inputs(node.op, static_cast<int>(node.inputs.size()))) {
        int& own = place(node.inputs[static_cast<std::size_t>(written)].node).part;
        if (own < 0) own = part;
      }
    }
  }

  const Graph& graph_;
  const std::vector<std::string>& cuts_;
  const std::unordered_map<NodeId, NodeId>& copies_;
  Parts parts_;
  std::vector<bool> constant_, backward_;       // [node]
  std::vector<std::vector<NodeId>> consumers_;  // [node]
};

// What a part has of forward; backward's work is in proportion to it.
struct Load {
  double seconds = 0;
  double variable_bytes = 0;  // trainable: as many of gradients
};

// A node at which a part may begin, and all before it.
struct CutPlace {
  std::string name;
  Load before;
};

// `all`: of the whole network.
std::vector<CutPlace> cut_places(const Graph& graph, Load& all) {
  const Parts whole = divide(graph, {});
  std::vector<CutPlace> places;
  std::vector<std::size_t> first_place(graph.nodes().size(), 0);  // of a variable: the place of its first reader
  for (const Node& node : graph.nodes()) {
    const Parts::Place& place = whole.nodes[static_cast<std::size_t>(node.id)];
    if (place.part < 0 || place.phase != Phase::forward || is_source(node) || is_update(node.op)) continue;
    if (node.outputs[0].shape.rank() > 1) places.push_back({node.name, all});  // not the loss
    for (const Tensor& input : node.inputs) {
      const auto* variable = graph.node(input).as<op::Variable>();
      if (variable == nullptr) continue;
      std::size_t& first = first_place[static_cast<std::size_t>(input.node)];
      if (first == 0) {
        first = std::max<std::size_t>(places.size(), 1);
        if (variable->trainable) all.variable_bytes += static_cast<double>(input.type().bytes());
      }
      if (places.size() <= first) continue;
      places.resize(first);  // all readers of a variable are in one part
      for (std::size_t& each : first_place) each = std::min(each, first);
    }
    all.seconds += rough_seconds(node);
  }
  return places;
}

// About what a part takes for forward of a micro-batch, with its share of what its workers need to sum the gradients of
// a step. Workers are divided by hand for links that are slow.
double cost_of(const Load& begin, const Load& end, int workers, int micro_batches) {
  constexpr double kLink = 1.25e8;  // bytes/s
  constexpr double kBothWays = 3;   // forward and backward, in relation to forward
  const double share = 1.0 / workers;
  const double gradients = 2 * (1 - share) * (end.variable_bytes - begin.variable_bytes) / kLink;
  return (end.seconds - begin.seconds) * share + gradients / (kBothWays * micro_batches);
}

std::vector<std::string> balanced_cuts(const Graph& graph, int parts, std::vector<int> workers, int micro_batches) {
  Load all;
  const std::vector<CutPlace> places = cut_places(graph, all);
  if (static_cast<int>(places.size()) < parts) {
    bad_input("{} parts: this network has only {} operations in which a part can begin", parts, places.size());
  }
  workers.resize(static_cast<std::size_t>(parts), 1);
  // The smallest limit that the cost of every part can keep to.
  const auto cuts_for = [&](double limit) {
    std::vector<std::size_t> cuts;
    Load begin;
    for (std::size_t i = 1; i < places.size(); ++i) {
      const Load& end = i + 1 < places.size() ? places[i + 1].before : all;
      const std::size_t left = places.size() - i;  // as many parts as are left need a place each
      const auto missing =
          static_cast<std::size_t>(parts) - 1 - std::min(cuts.size(), static_cast<std::size_t>(parts) - 1);
      const bool is_full = missing > 0 && cost_of(begin, end, workers[cuts.size()], micro_batches) > limit;
      if ((is_full || left <= missing) && missing > 0) {
        cuts.push_back(i);
        begin = places[i].before;
      }
    }
    return std::pair(cuts, cost_of(begin, all, workers.back(), micro_batches) <= limit);
  };
  double low = 0, high = cost_of({}, all, 1, micro_batches) + cost_of({}, all, 1 << 20, micro_batches);
  for (int i = 0; i < 50; ++i) {
    const double middle = (low + high) / 2;
    (cuts_for(middle).second ? high : low) = middle;
  }
  std::vector<std::string> names;
  for (const std::size_t at : cuts_for(high).first) names.push_back(places[at].name);
  return names;
}

PlanGraph as_seen_by(const Backend& backend, const Graph& graph, std::span<const Tensor> fetches) {
  return fuse_operations(prune(graph, fetches), backend.masks_from_src());
}

}  // namespace

Parts divide(const Graph& graph, const std::vector<std::string>& cuts,
             const std::unordered_map<NodeId, NodeId>& copies) {
  return Divider(graph, cuts, copies).run();
}

std::vector<bool> crossing_nodes(const Graph& graph, const Parts& parts) {
  std::vector<bool> crossing(graph.nodes().size(), false);
  for (const Node& node : graph.nodes()) {
    for (const Tensor& input : node.inputs) {
      const int from = parts.nodes[static_cast<std::size_t>(input.node)].part;
      if (from != parts.nodes[static_cast<std::size_t>(node.id)].part)
        crossing[static_cast<std::size_t>(input.node)] = true;
    }
  }
  return crossing;
}

VariableOwners owners_by_part(const PlanGraph& graph, const Parts& parts, const VariableOwners& owners) {
  VariableOwners result;
  int count = 1;
  for (const Parts::Place& place : parts.nodes) count = std::max(count, place.part + 1);
  for (const auto& [node, origin] : graph.origin) {
    if (graph.graph->node(node).as<op::Variable>() == nullptr) continue;
    const auto owner = owners.find(origin);
    const Parts::Place& place = parts.nodes[static_cast<std::size_t>(node)];
    const int phase = place.phase == Phase::weights ? 1 : 0;
    result[origin] = (((owner == owners.end() ? -1 : owner->second) + 1) * count + place.part) * 2 + phase;
  }
  return result;
}

// About what a core computes and moves.
double rough_seconds(const Node& node) {
  const Cost work = cost(node);
  return work.flops / 5e10 + work.bytes / 5e9;
}

std::vector<std::string> possible_cuts(const Graph& graph, std::span<const Tensor> fetches, const Backend& backend) {
  Load all;
  std::vector<std::string> names;
  for (const CutPlace& place : cut_places(*as_seen_by(backend, graph, fetches).graph, all)) names.push_back(place.name);
  if (!names.empty()) names.erase(names.begin());  // the network begins there
  return names;
}

std::vector<std::string> choose_cuts(const Graph& graph, std::span<const Tensor> fetches, const Backend& backend,
                                     int parts, const std::vector<int>& workers, int micro_batches) {
  return balanced_cuts(*as_seen_by(backend, graph, fetches).graph, parts, workers, micro_batches);
}

std::vector<PartWork> work_of_parts(const Graph& whole, std::span<const Tensor> fetches, const Backend& backend,
                                    const std::vector<std::string>& cuts,
                                    const std::function<double(const Node&)>& seconds) {
  const PlanGraph plan = as_seen_by(backend, whole, fetches);
  const Graph& graph = *plan.graph;
  const Parts parts = divide(graph, cuts);
  std::vector<PartWork> work(cuts.size() + 1);
  struct Readers {
    std::set<int> parts;
    int last_of_forward = -1;
    bool in_backward = false;
  };
  std::map<std::pair<NodeId, int>, Readers> readers;  // of a tensor
  for (const Node& node : graph.nodes()) {
    const Parts::Place& place = parts.nodes[static_cast<std::size_t>(node.id)];
    if (place.part < 0) continue;
    PartWork& own = work[static_cast<std::size_t>(place.part)];
    if (node.as<op::Variable>() != nullptr) {
      own.variable_bytes += node.outputs[0].bytes();
      continue;
    }
    if (is_source(node)) continue;
    (place.phase == Phase::forward    ? own.forward
     : place.phase == Phase::backward ? own.backward
                                      : own.weights) += seconds(node);
    for (const Tensor& input : node.inputs) {
      if (is_source(graph.node(input))) continue;
      Readers& of = readers[{input.node, input.output}];
      of.parts.insert(place.part);
      if (place.phase == Phase::forward) {
        of.last_of_forward = std::max(of.last_of_forward, place.part);
      } else {
        of.in_backward = true;
      }
    }
  }
  for (const auto& [tensor, of] : readers) {
    const Parts::Place& from = parts.nodes[static_cast<std::size_t>(tensor.first)];
    if (from.part < 0) continue;
    const std::int64_t bytes = graph.node(tensor.first).outputs[static_cast<std::size_t>(tensor.second)].bytes();
    PartWork& own = work[static_cast<std::size_t>(from.part)];
    for (const int part : of.parts) {
      if (part != from.part) own.sent_bytes += bytes;
    }
    if (from.phase != Phase::forward) continue;
    for (int part = from.part; part < of.last_of_forward; ++part)
      work[static_cast<std::size_t>(part)].crossing_bytes += bytes;
    if (of.in_backward) own.kept_bytes += bytes;
  }
  return work;
}

}  // namespace trireme
