// From a graph to a program: prune, fuse, recompute, order, choose kernels and layouts along the order, plan memory.
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "trireme/base/error.hpp"
#include "trireme/plan/passes.hpp"
#include "trireme/plan/program.hpp"
#include "trireme/plan/stages.hpp"

namespace trireme {
namespace {

// Results of constants alone are kept between runs up to this size; larger ones are cheaper to recompute.
constexpr std::int64_t kKeepConstantBytes = 1 << 20;

class Compiler {
 public:
  Compiler(PlanGraph graph, const Backend& backend, const CompileOptions& options, VariableLayouts& layouts)
      : plan_(std::move(graph)), backend_(backend), options_(options), layouts_(layouts) {
    options_.inter_threads = std::max(options.inter_threads, backend.device().streams());
  }

  void run();
  // Of the stages, if there are any, that of this one.
  Program program();
  MemorySummary memory_of(const StageOptions& stage) const;

 private:
  Parts parts() const { return divide(graph(), options_.stages->cuts, plan_.copies); }
  void add_source(const Node& node);
  void add_operation(const Node& node);
  KernelRequest request_for(const Node& node);
  // The buffer itself, or a copy in this format (made once).
  int in_format(int buffer, const Format& format);
  int add_reorder(int from, Buffer to);
  bool has_shadow(int buffer, const Format& format) const;
  int gradient_buffer(int buffer, NodeId variable);
  int add_buffer(Buffer buffer);
  void add_instruction(Instruction instruction, KernelChoice choice);
  bool runs_once(const Instruction& instruction) const;
  void add_fetches();

  const Graph& graph() const { return *plan_.graph; }
  Buffer& buffer(int id) { return program_.buffers[id]; }
  const Buffer& buffer(int id) const { return program_.buffers[id]; }
  int& buffer_of(Tensor tensor) { return tensors_[tensor.node][tensor.output]; }
  bool is_open(int id) const {
    return buffer(id).kind == MemoryKind::variable && !layouts_.contains(buffer(id).variable);
  }

  PlanGraph plan_;
  const Backend& backend_;
  CompileOptions options_;
  VariableLayouts& layouts_;
  Program program_;
  std::vector<std::vector<int>> tensors_;                 // [node][output] -> buffer
  std::map<std::pair<NodeId, int>, NodeId> gradient_of_;  // tensor -> variable whose gradient it is
  std::map<std::pair<int, std::string>, int> copies_;     // (buffer, format) -> buffer
  std::map<int, int> shadows_;                            // variable's buffer -> its shadow's
  std::vector<bool> constant_like_;  // buffer: depends only on constants (and, if not training, variables)
  InPlacePairs in_place_;
  std::set<NodeId> assigned_;  // variables of this graph written by something other than an optimizer
  std::set<NodeId> shadowed_;  // variables of the user's graph whose shadow is always up to date
  bool training_ = false;
};

void Compiler::run() {
  program_.backend = backend_.name();
  tensors_.resize(graph().nodes().size());
  for (const Node& node : graph().nodes()) {
    tensors_[node.id].assign(node.outputs.size(), -1);
    if (is_update(node.op)) program_.updates = true;
    if (node.as<op::ApplyGradients>() == nullptr) {
      for (const int written : written_inputs(node.op, static_cast<int>(node.inputs.size())))
        assigned_.insert(node.inputs[written].node);
      continue;
    }
    program_.trains = true;
    for (std::size_t i = 1; i + 1 < node.inputs.size(); i += 2) {
      const Tensor gradient = node.inputs[i + 1];
      gradient_of_.try_emplace({gradient.node, gradient.output}, plan_.origin.at(node.inputs[i].node));
    }
  }
  training_ = program_.updates || std::any_of(graph().nodes().begin(), graph().nodes().end(),
                                              [](const Node& node) { return is_backward(node.op); });
  for (const NodeId id : execution_order(graph())) {
    const Node& node = graph().node(id);
    is_source(node) ? add_source(node) : add_operation(node);
  }
  add_fetches();
  program_.recomputation = measure_recomputation(program_, plan_.copies, in_place_, options_);
}

Program Compiler::program() {
  if (options_.stages != nullptr)
    std::tie(program_, in_place_) = keep_stage(program_, in_place_, parts(), *options_.stages);
  program_.memory = plan_memory(program_, in_place_, options_);
  program_.graph = std::move(plan_.graph);
  return std::move(program_);
}

MemorySummary Compiler::memory_of(const StageOptions& stage) const {
  auto [program, in_place] = keep_stage(program_, in_place_, parts(), stage);
  return plan_memory(program, in_place, options_);
}

int Compiler::add_buffer(Buffer added) {
  added.bytes = added.desc.bytes();
  program_.buffers.push_back(std::move(added));
  constant_like_.push_back(false);
  return static_cast<int>(program_.buffers.size()) - 1;
}

void Compiler::add_source(const Node& node) {
  const TensorType& type = node.outputs[0];
  Buffer added{.desc = {type.dtype, type.shape, Layout::plain(type.shape.rank())}, .name = node.name};
  if (node.as<op::Variable>() != nullptr) {
    added.kind = MemoryKind::variable;
    added.variable = plan_.origin.at(node.id);
    if (node.as<op::Variable>()->trainable && !assigned_.contains(node.id)) shadowed_.insert(added.variable);
    if (auto known = layouts_.find(added.variable); known != layouts_.end()) added.desc.layout = known->second;
  } else if (node.as<op::Constant>() != nullptr) {
    added.kind = MemoryKind::constant;
  }
  const int id = add_buffer(added);
  tensors_[node.id][0] = id;
  if (added.kind == MemoryKind::arena) program_.placeholders[plan_.origin.at(node.id)] = id;
  if (added.kind == MemoryKind::constant) {
    constexpr std::int64_t kAlignment = 64;
    buffer(id).offset = program_.constant_bytes;
    program_.constant_bytes += (buffer(id).bytes + kAlignment - 1) / kAlignment * kAlignment;
    program_.constants.emplace_back(id, node.id);
  }
  constant_like_[id] = added.kind == MemoryKind::constant || (added.kind == MemoryKind::variable && !training_);
}

KernelRequest Compiler::request_for(const Node& node) {
  KernelRequest request{.node = node,
                        .inputs = {},
                        .input_open = {},
                        .output_wish = {},
                        .data_format = options_.data_format,
                        .training = training_,
                        .precision = options_.precision};
  for (const Tensor& input : node.inputs) {
    const int id = buffer_of(input);
    request.inputs.push_back(buffer(id).desc);
    request.input_open.push_back(is_open(id));
  }
  for (int i = 0; i < std::ssize(node.outputs); ++i) {
    const auto found = gradient_of_.find({node.id, i});
    const auto known = found == gradient_of_.end() ? layouts_.end() : layouts_.find(found->second);
    request.output_wish.push_back(known == layouts_.end() ? nullptr : &known->second);
  }
  return request;
}

void Compiler::add_operation(const Node& node) {
  Instruction instruction;
  instruction.name = node.name;
  instruction.operation = label_of(node.op);
  instruction.node = &node;
  instruction.update = is_update(node.op);
  instruction.recomputed = plan_.copies.contains(node.id);
  if (node.as<op::ApplyGradients>() != nullptr) {
    for (std::size_t i = 1; i + 1 < node.inputs.size(); i += 2) {
      int& gradient = buffer_of(node.inputs[i + 1]);
      const int placed = gradient_buffer(gradient, buffer(buffer_of(node.inputs[i])).variable);
      instruction.inputs.push_back(placed);  // in variable order; joined with them below
    }
  }
  const std::vector<int> gradients = std::move(instruction.inputs);
  instruction.inputs.clear();

  KernelRequest request = request_for(node);
  for (std::size_t i = 0; i < gradients.size(); ++i) request.inputs[2 * i + 2] = buffer(gradients[i]).desc;
  KernelChoice choice = backend_.choose(request);
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const bool gradient = !gradients.empty() && i >= 2 && i % 2 == 0;
    int id = gradient ? gradients[i / 2 - 1] : buffer_of(node.inputs[i]);
    if (is_open(id)) {
      const auto kept = choice.kept.find(static_cast<int>(i));
      buffer(id).desc.layout = kept == choice.kept.end() ? choice.inputs[i].layout : kept->second;
      buffer(id).bytes = buffer(id).desc.bytes();
      layouts_[buffer(id).variable] = buffer(id).desc.layout;
    }
    instruction.inputs.push_back(in_format(id, choice.inputs[i]));
  }
  for (int i = 0; i < std::ssize(node.outputs); ++i) {
    const TensorType& type = node.outputs[i];
    const Format& format = choice.outputs[i];
    Buffer added{.desc = {format.dtype, type.shape, format.layout}, .name = node.name};
    const Layout* wish = request.output_wish[i];
    if (wish != nullptr && format == Format(*wish, type.dtype)) {
      added.kind = MemoryKind::gradient;
      added.variable = gradient_of_.at({node.id, i});
    }
    const int id = add_buffer(std::move(added));
    tensors_[node.id][i] = id;
    instruction.outputs.push_back(id);
  }
  const auto stored_types = [&](const std::vector<int>& ids) {
    std::vector<TensorType> types;
    for (const int id : ids) types.push_back({buffer(id).desc.dtype, buffer(id).desc.shape});
    return types;
  };
  instruction.cost = cost(node.op, stored_types(instruction.inputs), stored_types(instruction.outputs));
  add_instruction(std::move(instruction), std::move(choice));
}

bool Compiler::runs_once(const Instruction& instruction) const {
  if (instruction.update || (instruction.node != nullptr && instruction.node->as<op::Dropout>() != nullptr))
    return false;
  std::int64_t bytes = 0;
  for (int id : instruction.outputs) {
    if (buffer(id).kind != MemoryKind::arena) return false;
    bytes += buffer(id).bytes;
  }
  return (!training_ || bytes <= kKeepConstantBytes) &&
         std::all_of(instruction.inputs.begin(), instruction.inputs.end(), [&](int id) { return constant_like_[id]; });
}

void Compiler::add_instruction(Instruction instruction, KernelChoice choice) {
  if (choice.scratch_bytes > 0) {
    instruction.scratch =
        add_buffer({.desc = {DataType::f32, Shape{(choice.scratch_bytes + 3) / 4}, Layout::plain(1)}});
  }
  instruction.shared_bytes = choice.shared_bytes;
  instruction.implementation = std::move(choice.implementation);
  instruction.kernel = std::move(choice.kernel);
  instruction.once = runs_once(instruction);
  for (int id : instruction.outputs) constant_like_[id] = instruction.once;
  in_place_.push_back(std::move(choice.in_place));
  program_.instructions.push_back(std::move(instruction));
}

int Compiler::add_reorder(int from, Buffer to) {
  KernelChoice choice = backend_.choose_reorder(buffer(from).desc, to.desc.format());
  Instruction instruction;
  instruction.name = to.name = buffer(from).name;
  instruction.operation = "reorder";
  instruction.cost.bytes = static_cast<double>(buffer(from).bytes + to.desc.bytes());
  instruction.inputs = {from};
  const int id = add_buffer(std::move(to));
  instruction.outputs = {id};
  add_instruction(std::move(instruction), std::move(choice));
  return id;
}

int Compiler::in_format(int id, const Format& format) {
  if (buffer(id).desc.format() == format) return id;
  if (has_shadow(id, format)) {
    int& shadow = shadows_.try_emplace(id, -1).first->second;
    if (shadow < 0) {
      shadow = add_buffer({.desc = {format.dtype, buffer(id).desc.shape, format.layout},
                           .name = buffer(id).name,
                           .kind = MemoryKind::shadow,
                           .variable = buffer(id).variable});
    }
    return shadow;
  }
  const std::string name = format.name();
  if (auto found = copies_.find({id, name}); found != copies_.end()) return found->second;
  Buffer copy{.desc = {format.dtype, buffer(id).desc.shape, format.layout}};
  const int made = add_reorder(id, std::move(copy));
  copies_[{id, name}] = made;
  return made;
}

bool Compiler::has_shadow(int id, const Format& format) const {
  const Buffer& of = buffer(id);
  return of.kind == MemoryKind::variable && shadowed_.contains(of.variable) && format.dtype != DataType::f32 &&
         format.dtype == backend_.shadow_type(options_.precision) && format.layout == of.desc.layout;
}

int Compiler::gradient_buffer(int id, NodeId variable) {
  if (buffer(id).kind == MemoryKind::gradient && buffer(id).variable == variable) return id;
  Buffer copy{.desc = buffer(id).desc, .kind = MemoryKind::gradient, .variable = variable};
  copy.desc.dtype = DataType::f32;
  if (auto known = layouts_.find(variable); known != layouts_.end()) copy.desc.layout = known->second;
  return add_reorder(id, std::move(copy));
}

void Compiler::add_fetches() {
  for (const Tensor& fetch : plan_.fetches) {
    if (is_update(graph().node(fetch).op)) {
      program_.fetches.push_back(-1);
      continue;
    }
    const int id = buffer_of(fetch);
    if (is_open(id)) layouts_[buffer(id).variable] = buffer(id).desc.layout;
    // A copy made earlier in the run has the variable's value from before its update.
    if (buffer(id).kind == MemoryKind::variable)
      std::erase_if(copies_, [&](const auto& copy) { return copy.first.first == id; });
    program_.fetches.push_back(in_format(id, {Layout::plain(fetch.shape().rank()), fetch.type().dtype}));
  }
}

// Otherwise a backend would silently use another precision: it takes the nearest kernel it has.
void check_precision(Precision precision, const Backend& backend) {
  if (backend.is_fast_in(precision)) return;
  std::vector<std::string_view> there;
  for (const Precision each : {Precision::fp32, Precision::tf32, Precision::bf16, Precision::fp16}) {
    if (backend.is_fast_in(each)) there.push_back(to_string(each));
  }
  bad_input("the backend '{}' does not support {} on this machine; it supports {}{}", backend.name(),
            to_string(precision), fmt::join(there, ", "),
            backend.device().is_host() ? "; GPUs (the backend 'cuda') support all precisions" : "");
}

// Until a stage is chosen: all stages compile the same.
Compiler compile_whole(const Graph& graph, std::span<const Tensor> fetches, const Backend& backend,
                       const CompileOptions& options, VariableLayouts& variable_layouts) {
  if (fetches.empty()) bad_input("nothing to run: give at least one tensor to fetch");
  for (const Tensor& fetch : fetches) {
    if (fetch.graph != &graph || fetch.node < 0) bad_input("a fetch is not a tensor of this graph");
  }
  check_precision(options.precision, backend);
  PlanGraph plan = prune(graph, fetches, options.batches);
  if (options.fuse) plan = fuse_operations(std::move(plan), backend.masks_from_src());
  VariableOwners owners = options.owners, owners_of_statistics;
  if (options.stages != nullptr) {  // what one update writes belongs to one part
    plan = divide_averages(std::move(plan), divide(*plan.graph, options.stages->cuts), *options.stages);
    const Parts parts = divide(*plan.graph, options.stages->cuts);
    owners = owners_by_part(plan, parts, owners);
    owners_of_statistics = owners_by_part(plan, parts, {});
  }
  if (options.fuse) {
    plan = fuse_all_updates(std::move(plan), options.update_bytes, owners, owners_of_statistics);
  }
  std::vector<bool> kept;
  if (options.stages != nullptr) kept = crossing_nodes(*plan.graph, divide(*plan.graph, options.stages->cuts));
  plan = recompute(std::move(plan), options.recompute, kept);
  Compiler compiler(std::move(plan), backend, options, variable_layouts);
  compiler.run();
  return compiler;
}

}  // namespace

double Program::flops() const {
  return std::accumulate(instructions.begin(), instructions.end(), 0.0, [](double sum, const Instruction& i) {
    return i.once || i.recomputed ? sum : sum + i.cost.flops;
  });
}

Program compile(const Graph& graph, std::span<const Tensor> fetches, const Backend& backend,
                const CompileOptions& options, VariableLayouts& variable_layouts) {
  return compile_whole(graph, fetches, backend, options, variable_layouts).program();
}

std::vector<MemorySummary> memory_of_stages(const Graph& graph, std::span<const Tensor> fetches, const Backend& backend,
                                            const CompileOptions& options) {
  VariableLayouts layouts;
  Compiler compiler = compile_whole(graph, fetches, backend, options, layouts);
  if (options.stages == nullptr) return {compiler.program().memory};
  std::vector<MemorySummary> memory;
  StageOptions stage = *options.stages;
  for (stage.stage = 0; stage.stage < stage.order.shape.stages; ++stage.stage)
    memory.push_back(compiler.memory_of(stage));
  return memory;
}

}  // namespace trireme
