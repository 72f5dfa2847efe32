// The part of Executable that trains together with other replicas: gradients go through an exchange before they are
// applied, and backward goes on meanwhile.
#include <algorithm>
#include <chrono>
#include <map>
#include <set>

#include "trireme/base/error.hpp"
#include "trireme/runtime/executable.hpp"

namespace trireme {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// Shadows are written with their variables.
bool is_of_variable(const Buffer& buffer) {
  return buffer.kind == MemoryKind::variable || buffer.kind == MemoryKind::shadow;
}

// Adds memory to the end of the last part where only padding lies between them, which is zero in all replicas.
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

std::vector<GradientBucket> Executable::gradient_buckets(MemorySide side) const {
  const bool on_host = side == MemorySide::host;
  if (on_host) store_.refresh_host_side();
  std::vector<GradientBucket> buckets;
  for (const Instruction& instruction : program_.instructions) {
    if (!applies_gradients(instruction)) continue;
    GradientBucket& bucket = buckets.emplace_back();
    bucket.name = instruction.name;
    bucket.rule = instruction.node->as<op::ApplyGradients>()->rule;
    bucket.learning_rate = static_cast<const float*>(host_address(instruction.inputs[0]));
    bucket.states.resize(static_cast<std::size_t>(op::state_count(bucket.rule.kind)));
    for (std::size_t i = 2; i < instruction.inputs.size(); i += 2) {
      const Buffer& gradient = program_.buffers[static_cast<std::size_t>(instruction.inputs[i])];
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

int Executable::first_use(const std::vector<NodeId>& variables) const {
  for (const int item : items_) {
    for (const int id : program_.instructions[static_cast<std::size_t>(item)].inputs) {
      const Buffer& buffer = program_.buffers[static_cast<std::size_t>(id)];
      const bool is_one = std::find(variables.begin(), variables.end(), buffer.variable) != variables.end();
      if (is_of_variable(buffer) && is_one) return item;
    }
  }
  return 0;
}

void Executable::set_exchange(GradientExchange* exchange) {
  if (exchange != nullptr && (pool_ != nullptr || place_.groups > 1)) {
    bad_input(
        "replicas cannot exchange gradients of a program with several inter-op threads or groups of cores; "
        "use one of each and more processes");
  }
  if (exchange != nullptr && bucket_updates_.empty()) plan_exchange();
  awaited_.assign(bucket_updates_.size(), false);
  exchange_ = exchange;
  if (!device_.is_host()) plan_device_exchange();
}

// An update may be put off past any instruction that has nothing to do with the variables it writes or their gradients.
void Executable::plan_exchange() {
  needs_updates_.assign(program_.instructions.size(), false);
  std::set<NodeId> updated;
  std::map<NodeId, std::size_t> bucket_of;
  for (std::size_t i = 0; i < program_.instructions.size(); ++i) {
    const Instruction& instruction = program_.instructions[i];
    for (const int id : instruction.inputs) {
      const Buffer& buffer = program_.buffers[static_cast<std::size_t>(id)];
      const bool exchanged = is_of_variable(buffer) || buffer.kind == MemoryKind::gradient;
      if (exchanged && updated.contains(buffer.variable)) needs_updates_[i] = true;
    }
    if (!applies_gradients(instruction)) continue;
    if (instruction.scratch >= 0) {
      fail(ErrorKind::failed, "'{}' needs scratch memory and cannot be put off; this backend cannot train replicas",
           instruction.name);
    }
    for (std::size_t at = 1; at < instruction.inputs.size(); at += 2) {
      const NodeId variable = program_.buffers[static_cast<std::size_t>(instruction.inputs[at])].variable;
      updated.insert(variable);
      bucket_of[variable] = bucket_updates_.size();
    }
    bucket_updates_.push_back(i);
  }
  const auto add_bucket = [&](int id, std::vector<std::size_t>& buckets) {
    if (id < 0) return;
    const Buffer& buffer = program_.buffers[static_cast<std::size_t>(id)];
    const auto found = bucket_of.find(buffer.variable);
    if (is_of_variable(buffer) && found != bucket_of.end()) buckets.push_back(found->second);
  };
  used_buckets_.assign(program_.instructions.size(), {});
  for (std::size_t i = 0; i < program_.instructions.size(); ++i) {
    if (applies_gradients(program_.instructions[i])) continue;
    for (const int id : program_.instructions[i].inputs) add_bucket(id, used_buckets_[i]);
  }
  for (const int id : program_.fetches) add_bucket(id, fetched_buckets_);
}

void Executable::wait_for_bucket(std::size_t bucket) {
  const int index = static_cast<int>(bucket);
  if (exchange_->ready(index)) return;
  const auto start = Clock::now();
  const perf::ScopedSpan span(main_track(), trace_.wait, index + 1);
  exchange_->wait(index);
  exchange_times_.wait += seconds_since(start);
}

void Executable::finish_bucket(std::size_t bucket) {
  wait_for_bucket(bucket);
  const auto start = Clock::now();
  execute(bucket_updates_[bucket]);
  exchange_times_.update += seconds_since(start);
}

void Executable::run_with_exchange() {
  exchange_times_ = {};
  exchange_->begin_step(context_.step);
  std::size_t complete = 0, updated = 0;
  for (const int item : items_) {
    const auto index = static_cast<std::size_t>(item);
    while (updated < complete && (needs_updates_[index] || exchange_->ready(static_cast<int>(updated)))) {
      finish_bucket(updated++);
    }
    if (complete < bucket_updates_.size() && index == bucket_updates_[complete]) {
      exchange_->complete(static_cast<int>(complete++));
    } else {
      execute(index);
    }
  }
  while (updated < complete) finish_bucket(updated++);
  exchange_->end_step();
}

void Executable::await_values(const std::vector<std::size_t>& buckets) {
  for (const std::size_t bucket : buckets) {
    if (awaited_[bucket]) wait_for_bucket(bucket);
    awaited_[bucket] = false;
  }
}

// Where variables are served, new values of the last update may still be on their way.
void Executable::run_and_collect() {
  exchange_times_ = {};
  exchange_->begin_step(context_.step);
  std::size_t complete = 0;
  for (const int item : items_) {
    const auto index = static_cast<std::size_t>(item);
    await_values(used_buckets_[index]);
    if (complete < bucket_updates_.size() && index == bucket_updates_[complete]) {
      exchange_->complete(static_cast<int>(complete++));
    } else {
      execute(index);
    }
  }
}

// New values of a bucket are written while later layers still run backward, and are waited for where they are used:
// usually by the same layer of the next step.
void Executable::run_with_served_variables() {
  exchange_times_ = {};
  exchange_->begin_step(context_.step);
  std::size_t complete = 0;
  for (const int item : items_) {
    const auto index = static_cast<std::size_t>(item);
    exchange_->check();
    await_values(used_buckets_[index]);
    if (complete < bucket_updates_.size() && index == bucket_updates_[complete]) {
      awaited_[complete] = true;
      exchange_->complete(static_cast<int>(complete++));
    } else {
      execute(index);
    }
  }
  await_values(fetched_buckets_);
  end_step_of_exchange();
}

void Executable::end_step_of_exchange() {
  const auto start = Clock::now();
  const perf::ScopedSpan span(main_track(), trace_.end_exchange);
  exchange_->end_step();
  exchange_times_.wait += seconds_since(start);
}

}  // namespace trireme
