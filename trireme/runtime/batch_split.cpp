#include "trireme/runtime/batch_split.hpp"

#include "trireme/base/error.hpp"
#include "trireme/runtime/executable_impl.hpp"

namespace trireme {

GroupThreads::GroupThreads(int groups, std::function<void(int)> start) : barrier_(groups), errors_(groups) {
  try {
    for (int group = 1; group < groups; ++group) {
      threads_.emplace_back([this, group, start] { work(group, start); });
    }
    // Last, so that the others do not inherit this thread's affinity.
    run([&](int group) {
      if (group == 0 && start) start(0);
    });
  } catch (...) {
    stop();
    throw;
  }
}

GroupThreads::~GroupThreads() { stop(); }

void GroupThreads::stop() noexcept {
  stopping_.store(true, std::memory_order_release);
  round_.fetch_add(1, std::memory_order_release);
  round_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void GroupThreads::work(int group, const std::function<void(int)>& start) {
  std::uint32_t seen = 0;
  try {
    if (start) start(group);
  } catch (...) {
    errors_[group] = std::current_exception();
    barrier_.abandon();
  }
  while (true) {
    wait_for_change(round_, seen);
    ++seen;
    if (stopping_.load(std::memory_order_acquire)) return;
    run_one(group, *body_);
    if (running_.fetch_sub(1, std::memory_order_acq_rel) == 1) running_.notify_all();
  }
}

void GroupThreads::run_one(int group, const std::function<void(int)>& body) noexcept {
  std::exception_ptr& error = errors_[group];
  if (error) return;
  try {
    body(group);
  } catch (...) {
    error = std::current_exception();
    barrier_.abandon();
  }
}

void GroupThreads::run(const std::function<void(int)>& body) {
  body_ = &body;
  running_.store(static_cast<std::uint32_t>(threads_.size()), std::memory_order_release);
  round_.fetch_add(1, std::memory_order_release);
  round_.notify_all();
  run_one(0, body);
  for (std::uint32_t left = running_.load(std::memory_order_acquire); left != 0;
       left = running_.load(std::memory_order_acquire)) {
    wait_for_change(running_, left);
  }
  for (const std::exception_ptr& error : errors_) {
    if (error) std::rethrow_exception(error);
  }
}

bool same_instructions(const Program& a, const Program& b) {
  if (a.instructions.size() != b.instructions.size()) return false;
  for (std::size_t i = 0; i < a.instructions.size(); ++i) {
    const Instruction &x = a.instructions[i], &y = b.instructions[i];
    if (x.operation != y.operation || x.update != y.update || x.shared_bytes != y.shared_bytes) return false;
  }
  return true;
}

BatchSplit::BatchSplit(std::vector<Program> programs, VariableStore& store, std::uint64_t seed, bool own_statistics,
                       const ReplicaPlace& replica, InterOpPool* pool, GroupThreads* threads)
    : threads_(threads) {
  for (const Program& program : programs) {
    if (!same_instructions(program, programs.front())) {
      fail(ErrorKind::failed,
           "the groups of a split batch were given different programs; use --batch-split 1 to avoid this");
    }
  }
  const int groups = static_cast<int>(programs.size());
  GroupPlace place{
      .groups = groups, .own_statistics = own_statistics, .barrier = groups > 1 ? &threads->barrier() : nullptr};
  shared_ = AlignedMemory(shared_bytes(programs.front()) * statistics_groups(place, replica));
  for (Program& program : programs) {
    executables_.push_back(
        std::make_unique<Executable>(std::move(program), store, seed, pool, place, replica, shared_.at(0)));
    ++place.group;
  }
  run_group_ = [this](int index) { group(index).run_share(); };
}

void BatchSplit::run() {
  if (groups() == 1) {
    group(0).run_share();
  } else {
    threads_->run(run_group_);
  }
  group(0).count_run();
}

void BatchSplit::set_exchange(GradientExchange* exchange, const GradientOptions& options) {
  for (int index = 0; index < groups(); ++index) group(index).set_exchange(index == 0 ? exchange : nullptr, options);
}

double BatchSplit::mean_output(int fetch) const {
  double sum = 0;
  const Program& program = group(0).program();
  const int fetches = static_cast<int>(std::ssize(program.fetches)) / program.micro_batches;
  for (int index = 0; index < groups(); ++index) {
    for (int m = 0; m < program.micro_batches; ++m) sum += group(index).output(m * fetches + fetch)[0];
  }
  return sum / groups() / program.micro_batches;
}

}  // namespace trireme
