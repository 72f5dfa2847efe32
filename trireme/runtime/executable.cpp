#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "trireme/base/clock.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/units.hpp"
#include "trireme/runtime/executable_impl.hpp"
#include "trireme/runtime/inter_op_pool.hpp"

namespace trireme {

namespace {

// Checks that everything besides the existing variables fits. Page rounding takes half a percent.
const Program& checked_to_fit(const Program& program, const ComputeDevice& device) {
  const MemorySummary& memory = program.memory;
  const auto fixed = static_cast<double>(program.constant_bytes + memory.gradient_bytes + memory.optimizer_bytes);
  double next_batch = 0;  // uploaded during a run
  for (const auto& [node, buffer] : program.placeholders) {
    next_batch += static_cast<double>(program.buffers[buffer].bytes);
  }
  const double planned = static_cast<double>(memory.planned_bytes) + next_batch;
  const double free = 0.995 * static_cast<double>(device.free_bytes());
  if (fixed + planned <= free) return program;
  throw OutOfMemory(fmt::format("{}: activations, scratch memory and the next batch take {}, gradients and the "
                                "optimizer's state take {}; only {} is free",
                                device.name(), format_bytes(planned), format_bytes(fixed), format_bytes(free)),
                    std::max(0.0, (free - fixed) / planned));
}

}  // namespace

Executable::Impl::Impl(Program program, VariableStore& store, std::uint64_t seed, InterOpPool* pool,
                       const GroupPlace& place, const ReplicaPlace& replica, void* shared)
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
  bind(false);
  trace_.tracks.assign(pool_ == nullptr ? 1 : static_cast<std::size_t>(pool_->threads()), nullptr);
  trace_.instructions.assign(program_.instructions.size(), 0);
  perform_item_ = [this](int item, int thread) { perform(current_->parts[item], thread); };
  if (!device_.is_host()) on_device_ = std::make_unique<OnDevice>(*this);
  if (program_.micro_batches > 1 && program_.trains) {
    set_exchange(nullptr, {});
  } else {
    update_ = plan_walk(false);
  }
}

Executable::Impl::~Impl() = default;

void* Executable::Impl::address(int id) const {
  const Buffer& buffer = program_.buffers[id];
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

int Executable::Impl::buffer_of(Tensor placeholder) const {
  const auto found = program_.placeholders.find(placeholder.node);
  if (found == program_.placeholders.end()) {
    bad_input("'{}' is not a placeholder that these fetches need", placeholder.graph->node(placeholder).name);
  }
  return found->second;
}

void* Executable::Impl::host_address(int buffer) const {
  return on_device_ ? on_device_->host_address(buffer) : address(buffer);
}

void Executable::Impl::run_share(std::int64_t sample_offset) {
  context_ = {.seed = seed_,
              .step = store_.step,
              .sample_offset = sample_offset,
              .group = place_.group,
              .groups = place_.groups,
              .statistics_groups = statistics_groups(place_, replica_),
              .statistics_group = replica_.statistics != nullptr ? replica_.replica : place_.group,
              .barrier = place_.barrier,
              .replicas = replica_.statistics,
              .track = trace_.tracks.front(),
              .barrier_label = trace_.barrier};
  if (on_device_) on_device_->begin_run();
  run_once_instructions();
  const bool collects = arithmetic_ != nullptr && arithmetic_->collects();
  current_ = collects ? &collect_ : &update_;
  exchange_times_ = {};
  started_ = 0;
  GradientExchange* const exchange = collects ? nullptr : exchange_;
  if (exchange != nullptr) exchange->begin_step(context_.step);
  if (on_device_) on_device_->capture(*current_);
  walk(*current_);
  if (arithmetic_) arithmetic_->end_run();
  if (exchange != nullptr) end_exchange();
  trace_.line.end();
  if (profiling_) ++profile_.runs;
  if (on_device_) on_device_->end_run();
}

void Executable::Impl::count_run() {
  if (program_.trains && current_ == &update_) ++store_.step;
  if (program_.updates) store_.touch();
  if (on_device_) on_device_->count_run();
}

void Executable::Impl::walk(Walk& walk) {
  if (pool_ != nullptr && !on_device_) return pool_->run(walk.successors, walk.predecessors, perform_item_);
  int finished = 0;  // buckets
  auto next = walk.parts.begin();
  const auto to_next_finish = [&] {
    next = std::find_if(next, walk.parts.end(), [&](const Walk::Part& part) { return part.finish == finished; });
  };
  to_next_finish();
  for (Walk::Part& part : walk.parts) {
    // Apply arrived results at once: they are in the cache, or are transferred during backward.
    while (next != walk.parts.end() && finished < started_ && exchange_->done(finished)) {
      perform(*next, 0);
      ++finished;
      to_next_finish();
    }
    if (part.finish >= 0) {
      if (part.finish < finished) continue;
      ++finished;
      to_next_finish();
    }
    perform(part, 0);
  }
}

void Executable::Impl::perform(Walk::Part& part, int thread) {
  if (exchange_ != nullptr) exchange_->check();
  if (part.on_device) return on_device_->run(part);
  for (int at = part.first; at < part.last; ++at) {
    perform(current_->schedule.steps[at], thread);
  }
}

void Executable::Impl::perform(const Step& step, int thread) {
  const auto index = static_cast<std::size_t>(step.index);
  perf::Track* const track = trace_.tracks[thread];
  switch (step.action) {
    case Action::compute:
      return on_device_ ? on_device_->apply(index) : execute(index, thread);
    case Action::barrier:
      return context_.barrier_wait();
    case Action::merge: {
      const perf::ScopedSpan span(track, trace_.gradients, step.index + 1);
      for (const Merge& gradient : merges_[index]) merge_groups(gradient.groups, gradient.elements, place_.group);
      return;
    }
    case Action::accumulate: {
      if (on_device_) on_device_->wait_for_download(step.index);
      const perf::ScopedSpan span(track, trace_.gradients, step.index + 1);
      return arithmetic_->accumulate(step.index);
    }
    case Action::download:
      return on_device_->download(step.index);
    case Action::start:
      if (on_device_) {
        on_device_->wait_for_download(step.index);
        on_device_->expect_values(step.index);
      }
      started_ = step.index + 1;
      return exchange_->start(step.index);
    case Action::scatter:
      return exchange_->scatter(step.index);
    case Action::gather:
      return exchange_->gather(step.index);
    case Action::wait:
      return wait_for_transfer(step.index, thread);
    case Action::begin:
      return link_->begin(program_.instructions[index].transfer.number);
    case Action::end:
      return wait_for_stage(index, thread);
    case Action::upload:
      return on_device_->upload(step.index);
    case Action::transform: {
      for (int bucket = 0; on_device_ && bucket < std::ssize(current_->schedule.updates); ++bucket) {
        on_device_->wait_for_download(bucket);
      }
      const perf::ScopedSpan span(track, trace_.gradients);
      return arithmetic_->transform(loss_scale());
    }
  }
}

void Executable::Impl::execute(std::size_t index, int thread) {
  trace_.line.go_to_instruction(index);
  const perf::ScopedSpan span(trace_.tracks[thread], trace_.instructions[index]);
  const bool timed = profiling_ || (exchange_ != nullptr && applies_gradients(program_.instructions[index]));
  if (!timed) return run_kernel(index);
  const auto start = SteadyClock::now();
  run_kernel(index);
  const double seconds = seconds_since(start);
  if (profiling_) profile_.seconds[index] += seconds;
  if (applies_gradients(program_.instructions[index])) {  // possibly by several threads of a pool
    std::atomic_ref(exchange_times_.update).fetch_add(seconds, std::memory_order_relaxed);
  }
}

void Executable::Impl::run_kernel(std::size_t index) {
  program_.instructions[index].kernel->run(context_);
  if (replica_.statistics != nullptr) replica_.statistics->check();
}

void Executable::Impl::wait_for_transfer(int bucket, int thread) {
  if (exchange_->done(bucket)) return;
  const auto start = SteadyClock::now();
  trace_.line.go_to_reduce();
  const perf::ScopedSpan span(trace_.tracks[thread], trace_.wait, bucket + 1);
  exchange_->wait(bucket);
  exchange_times_.wait += seconds_since(start);
}

void Executable::Impl::wait_for_stage(std::size_t instruction, int thread) {
  const int number = program_.instructions[instruction].transfer.number;
  if (link_->done(number)) return;
  const auto start = SteadyClock::now();
  trace_.line.go_to_instruction(instruction);
  const perf::ScopedSpan span(trace_.tracks[thread], trace_.stage);
  link_->wait(number);
  if (!on_device_) exchange_times_.stages += seconds_since(start);  // a device goes on meanwhile
}

void Executable::Impl::end_exchange() {
  const auto start = SteadyClock::now();
  trace_.line.go_to_reduce();
  const perf::ScopedSpan span(trace_.tracks.front(), trace_.end_exchange);
  exchange_->end_step();
  exchange_times_.wait += seconds_since(start);
}

// Factor of all gradients; 1 if the loss is not scaled.
double Executable::Impl::loss_scale() const {
  for (const Instruction& instruction : program_.instructions) {
    if (instruction.node == nullptr || instruction.node->as<op::UnscaledRates>() == nullptr) continue;
    const NodeId scale = program_.buffers[instruction.inputs[1]].variable;
    return store_.get(scale).f32()[0];
  }
  return 1;
}

void Executable::Impl::run_once_instructions() {
  // In a program with updates, once-only instructions depend only on constants.
  const bool done = program_.updates ? variables_seen_ != 0 : variables_seen_ == store_.version();
  if (done) return;
  for (std::size_t i = 0; i < program_.instructions.size(); ++i) {
    if (program_.instructions[i].once) program_.instructions[i].kernel->run(context_);
  }
  variables_seen_ = store_.version();
}

Executable::Executable(Program program, VariableStore& store, std::uint64_t seed, InterOpPool* pool,
                       const GroupPlace& place, const ReplicaPlace& replica, void* shared)
    : impl_(std::make_unique<Impl>(std::move(program), store, seed, pool, place, replica, shared)) {}

Executable::~Executable() = default;

const Program& Executable::program() const { return impl_->program_; }

bool Executable::needs(Tensor placeholder) const { return program().placeholders.contains(placeholder.node); }

std::vector<NodeId> Executable::placeholders() const {
  std::vector<NodeId> ids;
  for (const auto& [node, buffer] : program().placeholders) ids.push_back(node);
  std::sort(ids.begin(), ids.end());
  return ids;
}

void Executable::input_changed(Tensor placeholder) {
  if (impl_->on_device_) impl_->on_device_->input_changed(impl_->buffer_of(placeholder));
}

void Executable::send_inputs() {
  if (impl_->on_device_) impl_->on_device_->send_inputs();
}

void Executable::set_beside(std::function<void()> work) {
  if (impl_->on_device_) impl_->on_device_->set_beside(std::move(work));
}

template <typename T>
std::span<T> Executable::Impl::input(int buffer) {
  return {static_cast<T*>(host_address(buffer)),
          static_cast<std::size_t>(program_.buffers[buffer].desc.shape.elements())};
}

std::span<float> Executable::input_f32(Tensor placeholder) {
  input_changed(placeholder);
  return impl_->input<float>(impl_->buffer_of(placeholder));
}

std::span<std::int32_t> Executable::input_i32(Tensor placeholder) {
  input_changed(placeholder);
  return impl_->input<std::int32_t>(impl_->buffer_of(placeholder));
}

void Executable::feed(Tensor placeholder, const HostTensor& value) {
  const int buffer = impl_->buffer_of(placeholder);
  const TensorType type{placeholder.type().dtype, impl_->program_.buffers[buffer].desc.shape};
  if (value.type() != type) {
    bad_input("placeholder '{}' has shape {} of {}, but the value fed has {} of {}",
              placeholder.graph->node(placeholder).name, to_string(type.shape), to_string(type.dtype),
              to_string(value.shape()), to_string(value.type().dtype));
  }
  input_changed(placeholder);
  std::memcpy(impl_->host_address(buffer), value.data(), type.bytes());
}

void Executable::run() {
  run_share();
  count_run();
}

void Executable::run_share() { impl_->run_share(sample_offset); }

void Executable::count_run() { impl_->count_run(); }

double Executable::wait() { return impl_->on_device_ ? impl_->on_device_->wait() : 0; }

std::span<const float> Executable::output(int fetch) const {
  const int id = program().fetches[fetch];
  if (id < 0) return {};
  const auto elements = program().buffers[id].desc.shape.elements();
  impl_->device_.synchronize();
  return {static_cast<const float*>(impl_->host_address(id)), static_cast<std::size_t>(elements)};
}

HostTensor Executable::fetched(int fetch) const {
  const int id = program().fetches[fetch];
  if (id < 0) return {};
  const TensorDesc& desc = program().buffers[id].desc;
  HostTensor value(TensorType{desc.dtype, desc.shape});
  impl_->device_.synchronize();
  std::memcpy(value.data(), impl_->host_address(id), value.type().bytes());
  return value;
}

void Executable::set_exchange(GradientExchange* exchange, const GradientOptions& options) {
  impl_->set_exchange(exchange, options);
}

void Executable::forget_exchange() noexcept {
  impl_->update_ = {};
  impl_->collect_ = {};
  impl_->exchange_ = nullptr;
}

void Executable::set_link(StageLink* link) {
  if (link != nullptr) link->open(impl_->messages());
  impl_->link_ = link;
}

const Executable::ExchangeTimes& Executable::exchange_times() const { return impl_->exchange_times_; }

std::vector<GradientBucket> Executable::gradient_buckets(MemorySide side) const {
  return impl_->gradient_buckets(side);
}

double Executable::gradient_norm() const { return impl_->arithmetic_ ? impl_->arithmetic_->norm() : 0; }

void Executable::enable_profile() {
  impl_->profiling_ = true;
  impl_->profile_ = {.seconds = std::vector<double>(program().instructions.size(), 0.0), .runs = 0};
}

const Executable::Profile& Executable::profile() const { return impl_->profile_; }

void Executable::set_recorder(perf::Recorder& recorder) { impl_->set_recorder(recorder); }

}  // namespace trireme
