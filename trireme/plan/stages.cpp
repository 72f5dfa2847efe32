#include "trireme/plan/stages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

#include "trireme/base/error.hpp"
#include "trireme/base/nearest_name.hpp"

namespace trireme {
namespace {

bool is_source(const Node& node) {
  return node.as<op::Placeholder>() != nullptr || node.as<op::Variable>() != nullptr ||
         node.as<op::Constant>() != nullptr;
}

class Divider {
 public:
  Divider(const Graph& graph, const std::vector<std::string>& cuts)
      : graph_(graph), cuts_(cuts), parts_{std::vector<Parts::Place>(graph.nodes().size())} {
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
    return !is_source(node) && !constant_[index(node.id)] && !backward_[index(node.id)] && !is_update(node.op);
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
  Parts parts_;
  std::vector<bool> constant_, backward_;       // [node]
  std::vector<std::vector<NodeId>> consumers_;  // [node]
};

// About what a core computes and moves.
double seconds_of(const Node& node) {
  const Cost work = cost(node);
  return work.flops / 5e10 + work.bytes / 5e9;
}

std::vector<std::string> balanced_cuts(const Graph& graph, int parts) {
  // Of the nodes at which a part may begin, the work up to there: forward's, as backward's is in proportion to it.
  const Parts whole = divide(graph, {});
  std::vector<const Node*> places;
  std::vector<double> before;
  double sum = 0;
  for (const Node& node : graph.nodes()) {
    const Parts::Place& place = whole.nodes[static_cast<std::size_t>(node.id)];
    if (place.part < 0 || place.phase != Phase::forward || is_source(node) || is_update(node.op)) continue;
    if (node.outputs[0].shape.rank() > 1) {  // not the loss
      places.push_back(&node);
      before.push_back(sum);
    }
    sum += seconds_of(node);
  }
  if (static_cast<int>(places.size()) < parts) {
    bad_input("{} parts: this network has only {} operations in which a part can begin", parts, places.size());
  }
  // The smallest limit that every part can keep to.
  const auto cuts_for = [&](double limit) {
    std::vector<std::size_t> cuts;
    double begin = 0;
    for (std::size_t i = 1; i < places.size(); ++i) {
      const double end = i + 1 < places.size() ? before[i + 1] : sum;
      const std::size_t left = places.size() - i;  // as many parts as are left need a place each
      const auto missing =
          static_cast<std::size_t>(parts) - 1 - std::min(cuts.size(), static_cast<std::size_t>(parts) - 1);
      if ((end - begin > limit || left <= missing) && cuts.size() + 1 < static_cast<std::size_t>(parts)) {
        cuts.push_back(i);
        begin = before[i];
      }
    }
    return std::pair(cuts, sum - begin <= limit);
  };
  double low = sum / parts, high = sum;
  for (int i = 0; i < 50; ++i) {
    const double middle = (low + high) / 2;
    (cuts_for(middle).second ? high : low) = middle;
  }
  std::vector<std::string> names;
  for (const std::size_t at : cuts_for(high).first) names.push_back(places[at]->name);
  return names;
}

}  // namespace

int StageOptions::rank_of(int stage_of_rank, int micro_batch) const {
  return std::accumulate(replicas.begin(), replicas.begin() + stage_of_rank, 0) +
         micro_batch % replicas[static_cast<std::size_t>(stage_of_rank)];
}

Parts divide(const Graph& graph, const std::vector<std::string>& cuts) { return Divider(graph, cuts).run(); }

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

std::vector<std::string> choose_cuts(const Graph& graph, std::span<const Tensor> fetches, const Backend& backend,
                                     int parts) {
  return balanced_cuts(*fuse_operations(prune(graph, fetches), backend.masks_from_src()).graph, parts);
}

std::vector<PartWork> work_of_parts(const Graph& whole, std::span<const Tensor> fetches, const Backend& backend,
                                    const std::vector<std::string>& cuts) {
  const PlanGraph plan = fuse_operations(prune(whole, fetches), backend.masks_from_src());
  const Graph& graph = *plan.graph;
  const Parts parts = divide(graph, cuts);
  std::vector<PartWork> work(cuts.size() + 1);
  std::map<std::pair<std::pair<NodeId, int>, int>, bool> sent;
  for (const Node& node : graph.nodes()) {
    const Parts::Place& place = parts.nodes[static_cast<std::size_t>(node.id)];
    if (place.part < 0) continue;
    PartWork& own = work[static_cast<std::size_t>(place.part)];
    if (node.as<op::Variable>() != nullptr) {
      own.variable_bytes += node.outputs[0].bytes();
      continue;
    }
    if (is_source(node)) continue;
    const double seconds = seconds_of(node);
    (place.phase == Phase::forward    ? own.forward
     : place.phase == Phase::backward ? own.backward
                                      : own.weights) += seconds;
    for (const Tensor& input : node.inputs) {
      const int from = parts.nodes[static_cast<std::size_t>(input.node)].part;
      if (from < 0 || from == place.part ||
          !sent.emplace(std::pair(std::pair(input.node, input.output), place.part), true).second)
        continue;
      work[static_cast<std::size_t>(from)].sent_bytes += input.type().bytes();
    }
  }
  return work;
}

}  // namespace trireme
