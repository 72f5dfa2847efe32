#include "trireme/runtime/inter_op_pool.hpp"

#include <algorithm>

namespace trireme {
namespace {

// A step's access to memory, or to the exchange, whose steps keep their order.
struct Access {
  int step;
  enum class What : std::uint8_t { arena, variable, gradient, exchange } what;
  std::int64_t place;  // variable or gradient: the variable; arena: begin
  std::int64_t end;    // arena: end
  bool write;
};

bool conflict(const Access& a, const Access& b) {
  if (a.what != b.what || (!a.write && !b.write)) return false;
  if (a.what == Access::What::arena) return a.place < b.end && b.place < a.end;
  return a.place == b.place;
}

class Accesses {
 public:
  Accesses(const Program& program, const Schedule& schedule) : program_(program), schedule_(schedule) {}

  std::vector<Access> of(int step) {
    step_ = step;
    found_.clear();
    const Step& at = schedule_.steps[step];
    switch (at.action) {
      case Action::compute:
      case Action::begin:
      case Action::end:
        add_instruction(at.index);
        break;
      case Action::download:
        add_gradients(at.index);
        break;
      case Action::transform:
        for (int bucket = 0; bucket < std::ssize(schedule_.updates); ++bucket) add_bucket(bucket);
        break;
      case Action::start:  // servers are told the rate
      case Action::gather:
        add(instruction(schedule_.updates[at.index]).inputs[0], false);
        [[fallthrough]];
      case Action::scatter:
      case Action::wait:
        found_.push_back({step_, Access::What::exchange, 0, 0, true});
        [[fallthrough]];
      default:
        add_bucket(at.index);
    }
    return found_;
  }

 private:
  const Instruction& instruction(int index) const { return program_.instructions[index]; }

  void add(int id, bool write) {
    if (id < 0) return;
    const Buffer& buffer = program_.buffers[id];
    switch (buffer.kind) {
      case MemoryKind::constant:
        return;
      case MemoryKind::arena:
        found_.push_back({step_, Access::What::arena, buffer.offset, buffer.offset + buffer.bytes, write});
        return;
      case MemoryKind::gradient:
        found_.push_back({step_, Access::What::gradient, buffer.variable, 0, write});
        return;
      case MemoryKind::variable:
      case MemoryKind::shadow:  // written with its variable
        found_.push_back({step_, Access::What::variable, buffer.variable, 0, write});
    }
  }

  void add_instruction(int index) {
    const Instruction& at = instruction(index);
    for (const int id : at.inputs) {
      add(id, at.update && program_.buffers[id].kind == MemoryKind::variable);
    }
    for (const int id : at.outputs) add(id, true);
    add(at.scratch, true);
  }

  void add_gradients(int bucket) {
    const std::vector<int>& inputs = instruction(schedule_.updates[bucket]).inputs;
    for (std::size_t at = 2; at < inputs.size(); at += 2) add(inputs[at], false);
  }

  // Variables and gradients of a bucket, either of which a transfer may write.
  void add_bucket(int bucket) {
    const std::vector<int>& inputs = instruction(schedule_.updates[bucket]).inputs;
    for (std::size_t at = 1; at < inputs.size(); ++at) add(inputs[at], true);
  }

  const Program& program_;
  const Schedule& schedule_;
  int step_ = 0;
  std::vector<Access> found_;
};

}  // namespace

std::vector<std::vector<int>> hazards(const Program& program, const Schedule& schedule) {
  std::vector<std::vector<int>> successors(schedule.steps.size());
  std::vector<Access> earlier;
  Accesses accesses(program, schedule);
  for (int step = 0; step < std::ssize(schedule.steps); ++step) {
    if (schedule.steps[step].action == Action::barrier) continue;
    const std::vector<Access> now = accesses.of(step);
    for (const Access& access : now) {
      for (const Access& before : earlier) {
        if (conflict(before, access)) successors[before.step].push_back(step);
      }
    }
    earlier.insert(earlier.end(), now.begin(), now.end());
  }
  for (auto& list : successors) {
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
  }
  return successors;
}

InterOpPool::InterOpPool(int threads, std::function<void(int)> on_start) {
  try {
    for (int i = 1; i < threads; ++i) {
      threads_.emplace_back([this, i, on_start] {
        if (on_start) on_start(i);
        work(i);
      });
    }
    // Last, so that the others do not inherit this thread's affinity.
    if (on_start) on_start(0);
  } catch (...) {
    stop();
    throw;
  }
}

InterOpPool::~InterOpPool() { stop(); }

void InterOpPool::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  for (auto& thread : threads_) thread.join();
}

void InterOpPool::run(const std::vector<std::vector<int>>& successors, const std::vector<int>& predecessors,
                      const std::function<void(int, int)>& body) {
  {
    const std::lock_guard lock(mutex_);
    successors_ = &successors;
    body_ = &body;
    waiting_for_.assign(predecessors.begin(), predecessors.end());
    left_ = static_cast<int>(predecessors.size());
    error_ = nullptr;
    for (int item = 0; item < left_; ++item) {
      if (waiting_for_[item] == 0) ready_.push(item);
    }
  }
  wake_.notify_all();
  work(0);
  if (error_) std::rethrow_exception(error_);
}

void InterOpPool::work(int thread) {
  const bool until_done = thread == 0;
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock,
               [&] { return stopping_ || !ready_.empty() || (until_done && (left_ == 0 || error_) && running_ == 0); });
    if (stopping_) return;
    if (ready_.empty()) return;  // only the caller of run() wakes up for this
    const int item = ready_.top();
    ready_.pop();
    ++running_;
    lock.unlock();
    std::exception_ptr error;
    try {
      (*body_)(item, thread);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    --running_;
    --left_;
    if (error && !error_) error_ = error;
    if (error_) {
      ready_ = {};  // running items finish, no new ones start
    } else {
      for (const int next : (*successors_)[item]) {
        if (--waiting_for_[next] == 0) ready_.push(next);
      }
    }
    wake_.notify_all();
  }
}

}  // namespace trireme
