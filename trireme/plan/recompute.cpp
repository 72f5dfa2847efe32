#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "trireme/plan/passes.hpp"

namespace trireme {
namespace {

// Memory relative to the minimum that is accepted if it saves work.
constexpr double kNearlySmallest = 1.02;
// Results below this share of all forward results are not worth recomputing.
constexpr double kWorthDropping = 0.001;
// Number of segment size limits to try, between the largest result and all results together.
constexpr int kBoundsTried = 32;
// About what a CPU computes in the time of moving a byte.
constexpr double kFlopsPerByte = 10;

bool has_no_inputs(const Node& node) { return node.inputs.empty(); }

bool is_convolution(const Node& node) { return node.as<op::Convolution>() != nullptr; }

// Their results are small next to the weights that they would have to read again.
bool is_matrix_product(const Node& node) {
  return node.as<op::FullyConnected>() != nullptr || node.as<op::MatMul>() != nullptr;
}

// Of operations with several outputs only batch norm, whose statistics are kept.
bool can_run_again(const Node& node, Recompute recompute) {
  if (has_no_inputs(node) || is_update(node.op) || is_matrix_product(node)) return false;
  if (is_convolution(node) && recompute != Recompute::full) return false;
  return node.outputs.size() == 1 || node.as<op::BatchNorm>() != nullptr;
}

// Whether kernels can usually write the result over an input.
bool works_in_place(const Operation& operation) {
  return std::visit(
      []<typename Op>(const Op&) {
        return std::is_same_v<Op, op::BatchNorm> || std::is_same_v<Op, op::BatchNormInference> ||
               std::is_same_v<Op, op::BatchNormBackward> || std::is_same_v<Op, op::Unary> ||
               std::is_same_v<Op, op::UnaryBackward> || std::is_same_v<Op, op::Binary> ||
               std::is_same_v<Op, op::Bias> || std::is_same_v<Op, op::Dropout> || std::is_same_v<Op, op::Reshape>;
      },
      operation);
}

double work_of(const Node& node) {
  const Cost work = cost(node);
  return work.flops + kFlopsPerByte * work.bytes;
}

// Inputs of a node or of its copy, which for batch norm also reads the statistics.
std::vector<Tensor> inputs_of(const Node& node, bool copy) {
  std::vector<Tensor> inputs = node.inputs;
  if (const auto* norm = node.as<op::BatchNorm>(); norm != nullptr && copy) {
    const Tensor src = node.inputs[0];
    inputs.insert(inputs.begin() + (norm->gamma ? 3 : 2), {{src.graph, node.id, 1}, {src.graph, node.id, 2}});
  }
  return inputs;
}

// One node of a run; a copy is a forward node that runs again.
struct RunStep {
  NodeId node = -1;
  bool copy = false;
};

// Chooses which forward results to drop. Forward nodes that may run again are cut into segments; what a later segment
// needs to run again is kept, everything else is dropped. Few segments keep little, but a recomputed segment holds all
// its results at once; so several cuts are tried and judged by the memory of the whole run.
class RecomputeChoice {
 public:
  RecomputeChoice(const Graph& graph, std::span<const Tensor> fetches, Recompute recompute,
                  const std::vector<bool>& kept);

  // The run with the least memory, or slightly more with less work. Without copies if that is as good.
  std::vector<RunStep> best_run();

  // Whether the reader sees the recomputed tensor: copies and backward nodes do, if it was dropped.
  bool reads_copy(const RunStep& reader, Tensor tensor) const;

 private:
  struct Judged {
    std::int64_t peak_bytes = 0;
    double work = 0;  // of the copies
  };
  struct Trial {
    std::vector<int> ends = {};         // of segments: positions in candidates_, exclusive
    std::vector<bool> runs_again = {};  // by segment
    Judged judged = {};
  };

  void find_backward();
  void find_bytes();
  void find_candidates(std::span<const Tensor> fetches, Recompute recompute, const std::vector<bool>& kept);
  // Ends of segments of at most this many bytes that minimize what is kept.
  std::vector<int> cut(std::int64_t segment_bytes) const;
  // Sets dropped_ if only some segments run again.
  void drop(const std::vector<int>& ends, const std::vector<bool>& runs_again);
  std::vector<RunStep> run_steps() const;
  std::size_t number_of(Tensor tensor, bool copy) const;
  Judged judge() const;
  void judge(Trial& trial);
  std::vector<Trial> trials();

  const Graph& graph_;
  std::vector<bool> backward_;
  std::vector<NodeId> candidates_;         // nodes that may run again, in order
  std::vector<int> position_;              // by node: in candidates_, or -1
  std::vector<int> last_reader_;           // by position: of the last candidate that reads it, or itself
  std::vector<bool> read_backward_;        // by position
  std::vector<bool> dropped_;              // by node
  std::vector<std::size_t> first_number_;  // by node: number of its first output; finally the total
  std::vector<std::int64_t> bytes_;        // in the arena, by number of an original
};

RecomputeChoice::RecomputeChoice(const Graph& graph, std::span<const Tensor> fetches, Recompute recompute,
                                 const std::vector<bool>& kept)
    : graph_(graph),
      backward_(graph.nodes().size(), false),
      position_(graph.nodes().size(), -1),
      dropped_(graph.nodes().size(), false) {
  find_backward();
  find_bytes();
  find_candidates(fetches, recompute, kept);
}

void RecomputeChoice::find_backward() {
  for (const Node& node : graph_.nodes()) {
    backward_[node.id] =
        is_backward(node.op) ||
        std::any_of(node.inputs.begin(), node.inputs.end(), [&](const Tensor& input) { return backward_[input.node]; });
  }
}

void RecomputeChoice::find_bytes() {
  first_number_.push_back(0);
  for (const Node& node : graph_.nodes()) {
    for (const TensorType& output : node.outputs) bytes_.push_back(has_no_inputs(node) ? 0 : output.bytes());
    first_number_.push_back(bytes_.size());
  }
  // Gradients of variables are outside the arena.
  for (const Node& node : graph_.nodes()) {
    if (node.as<op::ApplyGradients>() == nullptr) continue;
    for (std::size_t i = 2; i < node.inputs.size(); i += 2) bytes_[number_of(node.inputs[i], false)] = 0;
  }
}

void RecomputeChoice::find_candidates(std::span<const Tensor> fetches, Recompute recompute,
                                      const std::vector<bool>& kept) {
  const std::size_t count = graph_.nodes().size();
  std::vector<bool> fed(count, false), read_forward(count, false), read_backward(count, false), fetched(count, false);
  for (const Tensor& fetch : fetches) fetched[fetch.node] = true;
  double forward_bytes = 0;
  for (const Node& node : graph_.nodes()) {
    bool depends = node.as<op::Placeholder>() != nullptr;
    for (const Tensor& input : node.inputs) {
      depends = depends || fed[input.node];
      if (input.output == 0 && !is_update(node.op))
        (backward_[node.id] ? read_backward : read_forward)[input.node] = true;
    }
    fed[node.id] = depends;
    if (depends && !backward_[node.id] && !node.outputs.empty())
      forward_bytes += static_cast<double>(node.outputs[0].bytes());
  }
  for (const Node& node : graph_.nodes()) {
    if (!kept.empty() && kept[node.id]) continue;
    if (backward_[node.id] || !can_run_again(node, recompute) || !fed[node.id] || !read_forward[node.id] ||
        fetched[node.id] || static_cast<double>(node.outputs[0].bytes()) < kWorthDropping * forward_bytes) {
      continue;
    }
    position_[node.id] = static_cast<int>(candidates_.size());
    last_reader_.push_back(position_[node.id]);
    read_backward_.push_back(read_backward[node.id]);
    candidates_.push_back(node.id);
    for (const Tensor& input : node.inputs) {
      if (const int read = position_[input.node]; read >= 0 && input.output == 0)
        last_reader_[read] = position_[node.id];
    }
  }
}

// Dynamic programming over the last cut: kept[end] is the minimum to keep of the candidates before it.
std::vector<int> RecomputeChoice::cut(std::int64_t segment_bytes) const {
  const std::size_t count = candidates_.size();
  std::vector<std::int64_t> bytes(count), kept(count + 1, std::numeric_limits<std::int64_t>::max());
  for (std::size_t i = 0; i < count; ++i) bytes[i] = graph_.node(candidates_[i]).outputs[0].bytes();
  std::vector<std::vector<std::size_t>> done(count);  // results whose last reader is this one
  for (std::size_t i = 0; i < count; ++i) done[last_reader_[i]].push_back(i);
  std::vector<int> previous(count + 1, 0);
  kept[0] = 0;
  for (std::size_t begin = 0; begin < count; ++begin) {
    std::int64_t held = 0, crossing = 0;
    for (std::size_t last = begin; last < count; ++last) {
      held += read_backward_[last] ? bytes[last] : 0;
      if (held > segment_bytes && last > begin) break;
      crossing += bytes[last];
      for (const std::size_t result : done[last]) crossing -= result >= begin ? bytes[result] : 0;
      if (kept[begin] + crossing < kept[last + 1]) {
        kept[last + 1] = kept[begin] + crossing;
        previous[last + 1] = static_cast<int>(begin);
      }
    }
  }
  std::vector<int> ends;
  for (int end = static_cast<int>(count); end > 0; end = previous[end]) ends.push_back(end);
  std::reverse(ends.begin(), ends.end());
  return ends;
}

void RecomputeChoice::drop(const std::vector<int>& ends, const std::vector<bool>& runs_again) {
  std::vector<std::size_t> segment;
  for (std::size_t s = 0; s < ends.size(); ++s) segment.resize(ends[s], s);
  std::vector<bool> needed_later(candidates_.size(), false);
  for (std::size_t i = candidates_.size(); i-- > 0;) {
    const bool dropped = runs_again[segment[i]] && !needed_later[i];
    dropped_[candidates_[i]] = dropped;
    if (!dropped) continue;
    for (const Tensor& input : graph_.node(candidates_[i]).inputs) {
      const int read = position_[input.node];
      if (read >= 0 && segment[read] != segment[i]) needed_later[read] = true;
    }
  }
}

bool RecomputeChoice::reads_copy(const RunStep& reader, Tensor tensor) const {
  return tensor.output == 0 && dropped_[tensor.node] && (reader.copy || backward_[reader.node]);
}

std::vector<RunStep> RecomputeChoice::run_steps() const {
  std::vector<RunStep> steps;
  std::vector<bool> copied(graph_.nodes().size(), false);
  const auto prepare = [&](const auto& self, const RunStep& reader) -> void {
    for (const Tensor& input : inputs_of(graph_.node(reader.node), reader.copy)) {
      if (!reads_copy(reader, input) || copied[input.node]) continue;
      copied[input.node] = true;
      self(self, RunStep{input.node, true});
    }
    steps.push_back(reader);
  };
  for (const Node& node : graph_.nodes()) prepare(prepare, RunStep{node.id, false});
  return steps;
}

// Tensors are numbered by node and output; those of copies come after all others.
std::size_t RecomputeChoice::number_of(Tensor tensor, bool copy) const {
  return first_number_[tensor.node] + tensor.output + (copy ? first_number_.back() : 0);
}

// Walks through the run: what is alive before a node, and what it adds while its inputs exist.
RecomputeChoice::Judged RecomputeChoice::judge() const {
  const std::vector<RunStep> steps = run_steps();
  std::vector<std::size_t> last_use(2 * first_number_.back(), 0);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    for (const Tensor& input : graph_.node(steps[i].node).inputs)
      last_use[number_of(input, reads_copy(steps[i], input))] = i;
  }
  Judged judged;
  std::int64_t live = 0;
  std::vector<std::int64_t> ending;  // bytes of inputs not read afterwards
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Node& node = graph_.node(steps[i].node);
    ending.clear();
    for (const Tensor& input : node.inputs) {
      std::size_t& last = last_use[number_of(input, reads_copy(steps[i], input))];
      if (last != i) continue;
      ending.push_back(bytes_[number_of(input, false)]);
      last = steps.size();  // a repeated input is freed once
    }
    const std::int64_t freed = std::accumulate(ending.begin(), ending.end(), std::int64_t{0});
    std::int64_t added = 0, reused = 0;
    for (int output = 0; output < (steps[i].copy ? 1 : static_cast<int>(node.outputs.size())); ++output) {
      const std::int64_t bytes = bytes_[number_of({nullptr, node.id, output}, false)];
      added += bytes;
      const auto place = std::find_if(ending.begin(), ending.end(), [&](std::int64_t had) { return had >= bytes; });
      if (!works_in_place(node.op) || place == ending.end()) continue;
      reused += bytes;
      ending.erase(place);
    }
    judged.peak_bytes = std::max(judged.peak_bytes, live + added - reused);
    live += added - freed;
    if (steps[i].copy) judged.work += work_of(node);
  }
  return judged;
}

void RecomputeChoice::judge(Trial& trial) {
  drop(trial.ends, trial.runs_again);
  trial.judged = judge();
}

std::vector<RecomputeChoice::Trial> RecomputeChoice::trials() {
  const int count = static_cast<int>(candidates_.size());
  std::vector<Trial> all{{.ends = {count}, .runs_again = {false}}};
  judge(all.back());
  std::int64_t largest = 1, sum = 1;
  for (const NodeId id : candidates_) {
    largest = std::max(largest, graph_.node(id).outputs[0].bytes());
    sum += graph_.node(id).outputs[0].bytes();
  }
  auto bound = static_cast<double>(largest);
  const double factor = std::pow(static_cast<double>(sum) / bound, 1.0 / kBoundsTried);
  for (int i = 0; i < kBoundsTried && count > 0; ++i, bound *= factor) {
    Trial trial{.ends = cut(static_cast<std::int64_t>(bound))};
    if (trial.ends == all.back().ends) continue;
    // Backward begins with the last segment, which is still there.
    trial.runs_again.assign(trial.ends.size(), true);
    trial.runs_again.back() = false;
    judge(trial);
    all.push_back(std::move(trial));
  }
  return all;
}

std::vector<RunStep> RecomputeChoice::best_run() {
  std::vector<Trial> all = trials();
  const auto smallest = std::min_element(
      all.begin(), all.end(), [](const Trial& a, const Trial& b) { return a.judged.peak_bytes < b.judged.peak_bytes; });
  const double limit = kNearlySmallest * static_cast<double>(smallest->judged.peak_bytes);
  const auto fits = [limit](const Trial& trial) { return static_cast<double>(trial.judged.peak_bytes) <= limit; };
  Trial best = *smallest;
  for (const Trial& trial : all) {
    if (fits(trial) && trial.judged.work < best.judged.work) best = trial;
  }
  // Keeps further segments if possible: the later one is, the shorter it must be kept.
  for (std::size_t segment = best.ends.size(); segment-- > 0;) {
    Trial kept = best;
    kept.runs_again[segment] = false;
    judge(kept);
    if (fits(kept)) best = std::move(kept);
  }
  drop(best.ends, best.runs_again);
  return run_steps();
}

Operation operation_of_copy(const Operation& operation) {
  const auto* norm = std::get_if<op::BatchNorm>(&operation);
  if (norm == nullptr) return operation;
  return op::BatchNormInference{norm->epsilon, norm->gamma, norm->add, norm->activation};
}

// A program without its copies, for memory planning only: readers of a copy read the original.
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
      // Batch norm's copy has only its first output.
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

  // A tensor is converted to another format once.
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

PlanGraph recompute(PlanGraph from, Recompute recompute, const std::vector<bool>& kept) {
  if (recompute == Recompute::none) return from;
  RecomputeChoice choice(*from.graph, from.fetches, recompute, kept);
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
    for (const Tensor& input : inputs_of(node, step.copy))
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
