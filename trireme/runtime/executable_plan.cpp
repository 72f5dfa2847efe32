// The planning part of Executable: kernels get memory, schedules become walks, exchanges get buckets, spans get names.
#include <fmt/format.h>

#include <algorithm>

#include "trireme/base/error.hpp"
#include "trireme/runtime/executable_impl.hpp"
#include "trireme/runtime/inter_op_pool.hpp"

namespace trireme {
namespace {

constexpr std::int64_t kCacheLine = 64;  // groups must not share cache lines

std::int64_t whole_lines(std::int64_t bytes) { return (bytes + kCacheLine - 1) / kCacheLine * kCacheLine; }

// Extends the last part if only padding, which is zero in all replicas, is in between.
void add_part(std::vector<std::span<float>>& parts, std::span<float> part) {
  constexpr std::ptrdiff_t kPadding = 64 / sizeof(float);  // the store's alignment
  if (!parts.empty()) {
    const auto after = part.data() - (parts.back().data() + parts.back().size());
    const auto before = parts.back().data() - (part.data() + part.size());
    if (after >= 0 && after < kPadding) {
      parts.back() = {parts.back().data(), part.data() + part.size()};
      return;
    }
    if (before >= 0 && before < kPadding) {
      parts.back() = {part.data(), parts.back().data() + parts.back().size()};
      return;
    }
  }
  parts.push_back(part);
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

void Executable::Impl::bind(bool updates_only) {
  const std::int64_t shared_stride = shared_bytes(program_);
  // If gradients are processed before the update, those of all groups have been merged.
  const int gradient_groups = gradient_options_.changes_step() ? 1 : place_.groups;
  std::int64_t shared_offset = 0;
  for (std::size_t index = 0; index < program_.instructions.size(); ++index) {
    const Instruction& instruction = program_.instructions[index];
    const bool applies = applies_gradients(instruction);
    const std::int64_t offset = shared_offset;
    shared_offset += whole_lines(instruction.shared_bytes);
    if (instruction.kernel == nullptr || (updates_only && !applies)) continue;
    KernelMemory memory;
    for (int group = 0; group < statistics_groups(place_, replica_); ++group) {
      memory.shared.push_back(static_cast<std::byte*>(shared_) + group * shared_stride + offset);
    }
    for (const int id : instruction.inputs) memory.inputs.push_back(address(id));
    for (const int id : instruction.outputs) memory.outputs.push_back(address(id));
    if (instruction.scratch >= 0) memory.scratch = address(instruction.scratch);
    for (std::size_t i = 1; applies && i < instruction.inputs.size(); i += 2) {
      const NodeId variable = program_.buffers[instruction.inputs[i]].variable;
      const Buffer& gradient = program_.buffers[instruction.inputs[i + 1]];
      if (place_.groups > 1 && gradient.kind != MemoryKind::gradient) {
        fail(ErrorKind::failed, "the gradient of a variable that only '{}' reads cannot be shared between groups",
             instruction.name);
      }
      auto& gradients = memory.gradients.emplace_back();
      for (int group = 0; group < gradient_groups; ++group) gradients.push_back(store_.gradient(variable, group));
      memory.shadows.push_back(store_.shadow(variable));
      auto& states = memory.optimizer_state.emplace_back();
      const op::OptimizerKind kind = instruction.node->as<op::ApplyGradients>()->rule.kind;
      for (int s = 0; s < op::state_count(kind); ++s) {
        states.push_back(store_.state(variable, s, op::initial_state(kind, s)));
      }
    }
    memory.first_sample = instruction.first_sample;
    instruction.kernel->bind(memory);
  }
}

Executable::Impl::Walk Executable::Impl::plan_walk(bool collects) const {
  Walk walk;
  walk.schedule =
      schedule_run(program_, gradient_options_,
                   {.group = place_.group, .groups = place_.groups, .on_host = device_.is_host()}, collects);
  if (pool_ != nullptr || on_device_) walk.successors = hazards(program_, walk.schedule);
  if (on_device_) {
    on_device_->plan(walk);
    return walk;
  }
  auto finish = walk.schedule.finishes.begin();
  const int count = static_cast<int>(walk.schedule.steps.size());
  for (int at = 0; at < count;) {
    const bool finishes = pool_ == nullptr && finish != walk.schedule.finishes.end() && finish->first == at;
    const int last = finishes ? finish->last : at + 1;
    walk.parts.push_back({.first = at, .last = last, .finish = finishes ? finish->bucket : -1});
    if (finishes) ++finish;
    at = last;
  }
  if (pool_ != nullptr) {
    walk.predecessors.assign(walk.successors.size(), 0);
    for (const auto& list : walk.successors) {
      for (const int next : list) ++walk.predecessors[next];
    }
  }
  return walk;
}

void Executable::Impl::set_exchange(GradientExchange* exchange, const GradientOptions& options) {
  if (place_.group == 0 && (exchange != nullptr) != (options.exchange != Exchange::none)) {
    bad_input("an exchange and its mode go together: give both or neither");
  }
  const GradientOptions before = gradient_options_;
  gradient_options_ = options;
  gradient_options_.accumulate *= program_.micro_batches;
  try {
    update_ = plan_walk(false);
  } catch (...) {
    gradient_options_ = before;
    throw;
  }
  collect_ = options.accumulate > 1 ? plan_walk(true) : Walk();
  exchange_ = exchange;
  arithmetic_.reset();
  merges_.clear();
  const GradientOptions& now = gradient_options_;
  if (place_.groups > 1 && now.changes_step() != before.changes_step()) bind(true);
  if (place_.groups > 1 && now.changes_step()) plan_merges();
  if (on_device_) on_device_->plan_exchange();  // before buckets are used: servers may have written values already
  if (now.accumulate > 1 || now.transforms()) {
    // The first group works for all; the others only count runs.
    auto buckets = place_.group == 0 ? gradient_buckets(MemorySide::host) : std::vector<GradientBucket>();
    arithmetic_ = std::make_unique<GradientArithmetic>(store_, std::move(buckets), now, program_.micro_batches);
  }
}

std::vector<StageMessage> Executable::Impl::messages() const {
  std::vector<StageMessage> messages(static_cast<std::size_t>(program_.transfers));
  for (const Instruction& instruction : program_.instructions) {
    const Transfer& transfer = instruction.transfer;
    if (transfer.kind == Transfer::Kind::none || transfer.kind == Transfer::Kind::wait) continue;
    const bool sends = transfer.kind == Transfer::Kind::send;
    const int id = sends ? instruction.inputs[0] : instruction.outputs[0];
    messages[transfer.number] = {
        .name = instruction.name,
        .sends = sends,
        .peer = transfer.peer,
        .tag = transfer.tag,
        .memory = {static_cast<std::byte*>(address(id)), static_cast<std::size_t>(program_.buffers[id].bytes)}};
  }
  return messages;
}

void Executable::Impl::plan_merges() {
  for (const int update : update_.schedule.updates) {
    std::vector<Merge>& merges = merges_.emplace_back();
    const Instruction& instruction = program_.instructions[update];
    for (std::size_t at = 2; at < instruction.inputs.size(); at += 2) {
      const Buffer& gradient = program_.buffers[instruction.inputs[at]];
      Merge& merge = merges.emplace_back();
      merge.elements = gradient.bytes / static_cast<std::int64_t>(sizeof(float));
      for (int group = 0; group < place_.groups; ++group) {
        merge.groups.push_back(store_.gradient(gradient.variable, group));
      }
    }
  }
}

std::vector<GradientBucket> Executable::Impl::gradient_buckets(MemorySide side) const {
  const bool on_host = side == MemorySide::host;
  if (on_host) store_.refresh_host_side();
  std::vector<GradientBucket> buckets;
  for (const Instruction& instruction : program_.instructions) {
    if (!applies_gradients(instruction)) continue;
    GradientBucket& bucket = buckets.emplace_back();
    bucket.name = instruction.name;
    bucket.rule = instruction.node->as<op::ApplyGradients>()->rule;
    bucket.learning_rate = static_cast<const float*>(host_address(instruction.inputs[0]));
    bucket.states.resize(op::state_count(bucket.rule.kind));
    for (std::size_t i = 2; i < instruction.inputs.size(); i += 2) {
      const Buffer& gradient = program_.buffers[instruction.inputs[i]];
      if (gradient.kind != MemoryKind::gradient) {
        fail(ErrorKind::failed, "a gradient of '{}' serves several variables and cannot be exchanged with replicas",
             instruction.name);
      }
      const auto elements = static_cast<std::size_t>(gradient.bytes) / sizeof(float);
      const NodeId variable = gradient.variable;
      add_part(bucket.parts, {on_host ? store_.host_gradient(variable) : store_.gradient(variable), elements});
      add_part(bucket.values, {on_host ? store_.host_value(variable) : store_.value(variable), elements});
      for (std::size_t array = 0; array < bucket.states.size(); ++array) {
        const int index = static_cast<int>(array);
        float* state = on_host ? store_.host_state(variable, index)
                               : store_.state(variable, index, op::initial_state(bucket.rule.kind, index));
        add_part(bucket.states[array], {state, elements});
      }
      bucket.variables.push_back(variable);
    }
    bucket.first_use = first_use(bucket.variables);
  }
  return buckets;
}

int Executable::Impl::first_use(const std::vector<NodeId>& variables) const {
  for (std::size_t i = 0; i < program_.instructions.size(); ++i) {
    for (const int id : program_.instructions[i].inputs) {
      const Buffer& buffer = program_.buffers[id];
      const bool is_one = std::find(variables.begin(), variables.end(), buffer.variable) != variables.end();
      if (!program_.instructions[i].once && buffer.is_of_variable() && is_one) return static_cast<int>(i);
    }
  }
  return 0;
}

void Executable::Impl::set_recorder(perf::Recorder& recorder) {
  using perf::SpanKind;
  trace_ = {};
  // The first group, or the first thread of a pool, is the caller of run().
  const auto track = [&](const char* what, int index) {
    trace_.tracks.push_back(
        &recorder.track(index == 0 ? perf::Recorder::kMainTrack : fmt::format("{} {}", what, index)));
  };
  if (pool_ == nullptr) {
    track("group of cores", place_.group);
  } else {
    for (int thread = 0; thread < pool_->threads(); ++thread) track("inter-op thread", thread);
  }
  if (!device_.is_host()) trace_.device = &recorder.track(device_.name());
  if (device_.is_host() && program_.stage >= 0) trace_.line = StageLine(recorder, program_);
  for (const Instruction& instruction : program_.instructions) {
    trace_.instructions.push_back(
        recorder.label({.name = instruction.name,
                        .kind = applies_gradients(instruction) ? SpanKind::optimizer : SpanKind::compute,
                        .detail = instruction.operation}));
  }
  trace_.wait = recorder.label({.name = "wait for bucket", .kind = SpanKind::waiting});
  trace_.stage = recorder.label({.name = "wait for another stage", .kind = SpanKind::waiting});
  trace_.end_exchange = recorder.label({.name = "wait for the end of the exchange", .kind = SpanKind::waiting});
  trace_.barrier = recorder.label({.name = "wait for other groups of cores", .kind = SpanKind::barrier});
  trace_.gradients = recorder.label({.name = "accumulate, merge, clip gradients", .kind = SpanKind::optimizer});
  trace_.launch = recorder.label({.name = "give work to the device", .kind = SpanKind::launch});
  trace_.wait_for_device = recorder.label({.name = "wait for the device", .kind = SpanKind::waiting});
  trace_.device_run = recorder.label({.name = "step on the device", .kind = SpanKind::compute});
}

}  // namespace trireme
