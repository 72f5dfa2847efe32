#include "trireme/plan/recompute.hpp"

#include <algorithm>
#include <map>

#include "trireme/plan/recompute_choice.hpp"

namespace trireme {
namespace {

Operation operation_of_copy(const Operation& operation) {
  const auto* norm = std::get_if<op::BatchNorm>(&operation);
  if (norm == nullptr) return operation;
  return op::BatchNormInference{norm->epsilon, norm->gamma, norm->add, norm->activation};
}

// A program without its copies, for the planning of memory alone: who reads a copy reads the original.
class WithoutCopies {
 public:
  WithoutCopies(const Program& program, const std::unordered_map<NodeId, NodeId>& copies, const InPlacePairs& in_place)
      : copies_(copies), stands_for_(program.buffers.size()) {
    for (std::size_t i = 0; i < stands_for_.size(); ++i) stands_for_[i] = static_cast<int>(i);
    result.buffers = program.buffers;
    result.placeholders = program.placeholders;
    for (std::size_t i = 0; i < program.instructions.size(); ++i) add(program.instructions[i], in_place[i]);
    for (const int id : program.fetches) result.fetches.push_back(id < 0 ? id : now(id));
  }

  Program result;
  InPlacePairs in_place_of_result;

 private:
  int now(int id) const { return stands_for_[id]; }

  void add(const Instruction& instruction, const std::vector<std::pair<int, int>>& in_place) {
    if (instruction.recomputed) {
      // Batch norm's copy has the first of its outputs alone.
      const int original = first_output_.at(copies_.at(instruction.node->id));
      stands_for_[instruction.outputs[0]] = original;
      return;
    }
    Instruction kept;
    for (const int id : instruction.inputs) kept.inputs.push_back(now(id));
    kept.outputs = instruction.outputs;
    kept.scratch = instruction.scratch;
    kept.once = instruction.once;
    kept.update = instruction.update;
    if (instruction.node == nullptr && !keep_reorder(kept)) return;
    if (instruction.node != nullptr && !kept.outputs.empty()) first_output_[instruction.node->id] = kept.outputs[0];
    result.instructions.push_back(std::move(kept));
    in_place_of_result.push_back(in_place);
  }

  // A tensor is brought into another format once.
  bool keep_reorder(const Instruction& reorder) {
    const Buffer& to = result.buffers[reorder.outputs[0]];
    if (to.kind != MemoryKind::arena) return true;
    const auto [known, is_new] =
        reordered_.try_emplace({reorder.inputs[0], to.desc.format().name()}, reorder.outputs[0]);
    if (!is_new) stands_for_[reorder.outputs[0]] = known->second;
    return is_new;
  }

  const std::unordered_map<NodeId, NodeId>& copies_;
  std::vector<int> stands_for_;                           // by buffer
  std::unordered_map<NodeId, int> first_output_;          // by node: its buffer
  std::map<std::pair<int, std::string>, int> reordered_;  // (buffer, format) -> buffer
};

}  // namespace

PlanGraph recompute(PlanGraph from, Recompute recompute) {
  if (recompute == Recompute::none) return from;
  RecomputeChoice choice(*from.graph, from.fetches, recompute);
  const std::vector<RunStep> steps = choice.best_run();
  if (std::none_of(steps.begin(), steps.end(), [](const RunStep& step) { return step.copy; })) return from;

  PlanGraph to{std::make_unique<Graph>(), {}, {}};
  std::unordered_map<NodeId, NodeId> originals, again;  // node of `from` -> node of `to`
  const auto moved = [&](Tensor t, bool copy) {
    return Tensor{to.graph.get(), (copy ? again : originals).at(t.node), t.output};
  };
  for (const RunStep& step : steps) {
    const Node& node = from.graph->node(step.node);
    std::vector<Tensor> inputs;
    for (const Tensor& input : RecomputeChoice::inputs_of(node, step.copy))
      inputs.push_back(moved(input, choice.reads_copy(step, input)));
    if (step.copy) {
      const NodeId id = to.graph->add(operation_of_copy(node.op), std::move(inputs), node.name + "/again").node;
      again[node.id] = id;
      to.copies[id] = originals.at(node.id);
      continue;
    }
    const NodeId id = to.graph->add(node.op, std::move(inputs), node.name).node;
    originals[node.id] = id;
    if (const auto origin = from.origin.find(node.id); origin != from.origin.end()) to.origin[id] = origin->second;
  }
  for (const Tensor& fetch : from.fetches) to.fetches.push_back(moved(fetch, false));
  return to;
}

Recomputation measure_recomputation(const Program& program, const std::unordered_map<NodeId, NodeId>& copies,
                                    const InPlacePairs& in_place, const CompileOptions& options) {
  Recomputation total;
  Cost useful, extra;
  for (const Instruction& instruction : program.instructions) {
    if (instruction.once) continue;
    Cost& sum = instruction.recomputed ? extra : useful;
    sum.flops += instruction.cost.flops;
    sum.bytes += instruction.cost.bytes;
    total.nodes += instruction.recomputed ? 1 : 0;
  }
  if (total.nodes == 0) return total;
  total.extra_flops = extra.flops / useful.flops;
  total.extra_bytes = extra.bytes / useful.bytes;
  WithoutCopies without(program, copies, in_place);
  total.planned_bytes_without = plan_memory(without.result, without.in_place_of_result, options).planned_bytes;
  return total;
}

}  // namespace trireme
