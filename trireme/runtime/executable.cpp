#include "trireme/runtime/executable.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <set>

#include "trireme/base/error.hpp"
#include "trireme/base/units.hpp"
#include "trireme/runtime/inter_op_pool.hpp"

namespace trireme {

namespace {

constexpr std::int64_t kCacheLine = 64;  // groups must not write into each other's lines

std::int64_t whole_lines(std::int64_t bytes) { return (bytes + kCacheLine - 1) / kCacheLine * kCacheLine; }

}  // namespace

namespace {

// Before anything is allocated for it: what it needs beside the variables, which are there. Half a percent goes to the
// ends of pages.
const Program& checked_to_fit(const Program& program, const ComputeDevice& device) {
  const MemorySummary& memory = program.memory;
  const auto fixed = static_cast<double>(program.constant_bytes + memory.gradient_bytes + memory.optimizer_bytes);
  double next_batch = 0;  // which comes during a run
  for (const auto& [node, buffer] : program.placeholders) {
    next_batch += static_cast<double>(program.buffers[static_cast<std::size_t>(buffer)].bytes);
  }
  const double planned = static_cast<double>(memory.planned_bytes) + next_batch;
  const double free = 0.995 * static_cast<double>(device.free_bytes());
  if (fixed + planned <= free) return program;
  throw OutOfMemory(fmt::format("{}: activations, scratch memory and the next batch take {}, gradients and the "
                                "optimizer's state {}; {} are free",
                                device.name(), format_bytes(planned), format_bytes(fixed), format_bytes(free)),
                    std::max(0.0, (free - fixed) / planned));
}

}  // namespace

int statistics_groups(const GroupPlace& place, const ReplicaPlace& replica) {
  if (replica.statistics != nullptr) return replica.replicas;
  return place.own_statistics ? 1 : place.groups;
}

std::int64_t shared_bytes(const Program& program) {
  std::int64_t bytes = 0;
  for (const Instruction& instruction : program.instructions) bytes += whole_lines(instruction.shared_bytes);
  return bytes;
}

bool applies_gradients(const Instruction& instruction) {
  return instruction.node != nullptr && instruction.node->as<op::ApplyGradients>() != nullptr;
}

Executable::Executable(Program program, VariableStore& store, std::uint64_t seed, InterOpPool* pool, GroupPlace place,
                       ReplicaPlace replica, void* shared)
    : program_(std::move(program)),
      store_(store),
      device_(store.device()),
      seed_(seed),
      place_(place),
      replica_(replica),
      shared_(shared),
      arena_(device_.allocate(checked_to_fit(program_, device_).memory.planned_bytes, "activations and scratch")),
      constants_(device_.allocate(program_.constant_bytes, "constants")),
      pool_(pool) {
  for (const auto& [buffer, node] : program_.constants) {
    const HostTensor& value = program_.graph->node(node).as<op::Constant>()->value;
    device_.upload(address(buffer), value.data(), value.type().bytes());
  }
  device_.synchronize();
  bind();
  plan_meetings();
  trace_.tracks.assign(pool_ == nullptr ? 1 : static_cast<std::size_t>(pool_->threads()), nullptr);
  trace_.instructions.assign(program_.instructions.size(), 0);
  for (std::size_t i = 0; i < program_.instructions.size(); ++i) {
    if (!program_.instructions[i].once) items_.push_back(static_cast<int>(i));
  }
  if (pool_ != nullptr) {
    successors_ = hazards(program_);
    predecessors_.assign(successors_.size(), 0);
    for (const auto& list : successors_) {
      for (const int next : list) ++predecessors_[static_cast<std::size_t>(next)];
    }
    execute_item_ = [this](int index, int thread) { execute(static_cast<std::size_t>(index), thread); };
  }
  if (!device_.is_host()) {
    plan_staging();
    plan_lanes();
  }
}

void* Executable::address(int id) const {
  const Buffer& buffer = program_.buffers[static_cast<std::size_t>(id)];
  switch (buffer.kind) {
    case MemoryKind::arena:
      return arena_.at(buffer.offset);
    case MemoryKind::constant:
      return constants_.at(buffer.offset);
    case MemoryKind::variable:
      return store_.value(buffer.variable);
    case MemoryKind::shadow:
      return store_.shadow(buffer.variable);
    case MemoryKind::gradient:
      return store_.gradient(buffer.variable, place_.group);
  }
  return nullptr;
}

void Executable::bind() {
  const std::int64_t shared_stride = shared_bytes(program_);
  std::int64_t shared_offset = 0;
  for (Instruction& instruction : program_.instructions) {
    KernelMemory memory;
    for (int group = 0; group < statistics_groups(place_, replica_); ++group) {
      memory.shared.push_back(static_cast<std::byte*>(shared_) + group * shared_stride + shared_offset);
    }
    shared_offset += whole_lines(instruction.shared_bytes);
    for (const int id : instruction.inputs) memory.inputs.push_back(address(id));
    for (const int id : instruction.outputs) memory.outputs.push_back(address(id));
    if (instruction.scratch >= 0) memory.scratch = address(instruction.scratch);
    const auto* apply = instruction.node == nullptr ? nullptr : instruction.node->as<op::ApplyGradients>();
    if (apply != nullptr) {
      for (std::size_t i = 1; i < instruction.inputs.size(); i += 2) {
        const NodeId variable = program_.buffers[static_cast<std::size_t>(instruction.inputs[i])].variable;
        const Buffer& gradient = program_.buffers[static_cast<std::size_t>(instruction.inputs[i + 1])];
        if (place_.groups > 1 && gradient.kind != MemoryKind::gradient) {
          fail(ErrorKind::failed, "the gradient of a variable that only '{}' reads cannot be shared between groups",
               instruction.name);
        }
        auto& gradients = memory.gradients.emplace_back();
        for (int group = 0; group < place_.groups; ++group) gradients.push_back(store_.gradient(variable, group));
        memory.shadows.push_back(store_.shadow(variable));
        auto& states = memory.optimizer_state.emplace_back();
        for (int s = 0; s < op::state_count(apply->rule.kind); ++s) {
          states.push_back(store_.state(variable, s, op::initial_state(apply->rule.kind, s)));
        }
      }
    }
    instruction.kernel->bind(memory);
  }
}

// All groups use the same variables. They meet before gradients are applied, since each update needs the gradients of
// all; before a variable is written that a slower group may still read; and before what one group has written is read.
void Executable::plan_meetings() {
  meets_.assign(program_.instructions.size(), false);
  skips_ = meets_;
  if (place_.groups == 1) return;
  std::set<NodeId> read, written;  // since the last meeting
  for (std::size_t i = 0; i < program_.instructions.size(); ++i) {
    const Instruction& instruction = program_.instructions[i];
    const bool gradients = applies_gradients(instruction);
    std::vector<int> targets;
    if (instruction.update) targets = written_inputs(instruction.node->op, static_cast<int>(instruction.inputs.size()));
    std::vector<NodeId> reads, writes;
    for (std::size_t at = 0; at < instruction.inputs.size(); ++at) {
      const Buffer& buffer = program_.buffers[static_cast<std::size_t>(instruction.inputs[at])];
      if (buffer.kind != MemoryKind::variable) continue;
      const bool target = std::find(targets.begin(), targets.end(), static_cast<int>(at)) != targets.end();
      (target ? writes : reads).push_back(buffer.variable);
    }
    const auto among = [](const std::set<NodeId>& set) { return [&set](NodeId id) { return set.contains(id); }; };
    meets_[i] = gradients || std::any_of(reads.begin(), reads.end(), among(written)) ||
                std::any_of(writes.begin(), writes.end(), among(read)) ||
                std::any_of(writes.begin(), writes.end(), among(written));
    if (meets_[i]) {
      read.clear();
      written.clear();
    }
    read.insert(reads.begin(), reads.end());
    written.insert(writes.begin(), writes.end());
    // Averages of what all groups know alike are updated by one of them; gradients are applied by all, each a share.
    skips_[i] = instruction.update && !gradients && place_.group > 0;
  }
}

bool Executable::needs(Tensor placeholder) const { return program_.placeholders.contains(placeholder.node); }

std::vector<NodeId> Executable::placeholders() const {
  std::vector<NodeId> ids;
  for (const auto& [node, buffer] : program_.placeholders) ids.push_back(node);
  std::sort(ids.begin(), ids.end());
  return ids;
}

int Executable::buffer_of(Tensor placeholder) const {
  const auto found = program_.placeholders.find(placeholder.node);
  if (found == program_.placeholders.end()) {
    bad_input("'{}' is no placeholder that these fetches need", placeholder.graph->node(placeholder).name);
  }
  return found->second;
}

std::span<float> Executable::input_f32(Tensor placeholder) {
  input_changed(placeholder);
  return {static_cast<float*>(host_address(buffer_of(placeholder))),
          static_cast<std::size_t>(placeholder.shape().elements())};
}

std::span<std::int32_t> Executable::input_i32(Tensor placeholder) {
  input_changed(placeholder);
  return {static_cast<std::int32_t*>(host_address(buffer_of(placeholder))),
          static_cast<std::size_t>(placeholder.shape().elements())};
}

void Executable::feed(Tensor placeholder, const HostTensor& value) {
  const int buffer = buffer_of(placeholder);
  const TensorType& type = placeholder.type();
  if (value.type() != type) {
    bad_input("placeholder '{}' takes {} of {}, the value fed is {} of {}", placeholder.graph->node(placeholder).name,
              to_string(type.shape), to_string(type.dtype), to_string(value.shape()), to_string(value.type().dtype));
  }
  input_changed(placeholder);
  std::memcpy(host_address(buffer), value.data(), static_cast<std::size_t>(type.bytes()));
}

void Executable::execute(std::size_t index, int thread) {
  perf::Track* const track = trace_.tracks[static_cast<std::size_t>(thread)];
  if (meets_[index]) context_.meet();
  if (skips_[index]) return;
  const perf::ScopedSpan span(track, trace_.instructions[index]);
  if (!profiling_) {
    run_kernel(index);
    return;
  }
  const auto start = std::chrono::steady_clock::now();
  run_kernel(index);
  profile_.seconds[index] += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void Executable::run_kernel(std::size_t index) {
  program_.instructions[index].kernel->run(context_);
  if (replica_.statistics != nullptr) replica_.statistics->check();
}

void Executable::run_once_instructions() {
  // In a program that updates variables, what runs once depends on constants alone.
  const bool done = program_.updates ? variables_seen_ != 0 : variables_seen_ == store_.version();
  if (done) return;
  for (std::size_t i = 0; i < program_.instructions.size(); ++i) {
    if (program_.instructions[i].once) program_.instructions[i].kernel->run(context_);
  }
  variables_seen_ = store_.version();
}

void Executable::run() {
  run_share();
  count_run();
}

void Executable::count_run() {
  if (program_.trains && !collected_) ++store_.step;
  if (program_.updates) store_.touch();
  values_seen_ = store_.version();
}

void Executable::run_share() {
  context_ = {.seed = seed_,
              .step = store_.step,
              .sample_offset = sample_offset,
              .group = place_.group,
              .groups = place_.groups,
              .statistics_groups = statistics_groups(place_, replica_),
              .statistics_group = replica_.statistics != nullptr ? replica_.replica : place_.group,
              .meeting = place_.meeting,
              .replicas = replica_.statistics,
              .track = main_track(),
              .meet_label = trace_.meet};
  if (!device_.is_host()) {
    run_on_device();
    return;
  }
  run_once_instructions();
  collected_ = exchange_ != nullptr && exchange_->only_collects();
  if (pool_ != nullptr) {
    pool_->run(successors_, predecessors_, items_, execute_item_);
  } else if (collected_) {
    run_and_collect();
  } else if (exchange_ != nullptr && exchange_->updates_variables()) {
    run_with_served_variables();
  } else if (exchange_ != nullptr) {
    run_with_exchange();
  } else {
    for (const int index : items_) execute(static_cast<std::size_t>(index));
  }
  if (profiling_) ++profile_.runs;
}

std::span<const float> Executable::output(int fetch) const {
  const int id = program_.fetches[static_cast<std::size_t>(fetch)];
  if (id < 0) return {};
  const auto elements = program_.buffers[static_cast<std::size_t>(id)].desc.shape.elements();
  device_.synchronize();
  return {static_cast<const float*>(host_address(id)), static_cast<std::size_t>(elements)};
}

HostTensor Executable::fetched(int fetch) const {
  const int id = program_.fetches[static_cast<std::size_t>(fetch)];
  if (id < 0) return {};
  const TensorDesc& desc = program_.buffers[static_cast<std::size_t>(id)].desc;
  HostTensor value(TensorType{desc.dtype, desc.shape});
  device_.synchronize();
  std::memcpy(value.data(), host_address(id), static_cast<std::size_t>(value.type().bytes()));
  return value;
}

void Executable::enable_profile() {
  profiling_ = true;
  profile_.seconds.assign(program_.instructions.size(), 0.0);
  profile_.runs = 0;
}

}  // namespace trireme
