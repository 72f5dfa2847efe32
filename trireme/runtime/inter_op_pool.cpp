#include "trireme/runtime/inter_op_pool.hpp"

#include <algorithm>

namespace trireme {
namespace {

struct Access {
  int instruction;
  MemoryKind kind;
  std::int64_t place;  // variable or gradient: the variable; arena: where it begins
  std::int64_t end;    // arena: where it ends
  bool write;
};

bool conflict(const Access& a, const Access& b) {
  if (a.kind != b.kind || (!a.write && !b.write)) return false;
  if (a.kind == MemoryKind::arena) return a.place < b.end && b.place < a.end;
  return a.place == b.place;
}

}  // namespace

std::vector<std::vector<int>> hazards(const Program& program) {
  std::vector<std::vector<int>> successors(program.instructions.size());
  std::vector<Access> earlier;
  for (std::size_t i = 0; i < program.instructions.size(); ++i) {
    const Instruction& instruction = program.instructions[i];
    if (instruction.once) continue;
    std::vector<Access> now;
    auto add = [&](int id, bool write) {
      if (id < 0) return;
      const Buffer& buffer = program.buffers[static_cast<std::size_t>(id)];
      if (buffer.kind == MemoryKind::constant) return;
      const bool arena = buffer.kind == MemoryKind::arena;
      // A shadow is written with its variable.
      const MemoryKind kind = buffer.kind == MemoryKind::shadow ? MemoryKind::variable : buffer.kind;
      now.push_back({static_cast<int>(i), kind, arena ? buffer.offset : buffer.variable,
                     arena ? buffer.offset + buffer.bytes : 0, write});
    };
    for (int id : instruction.inputs) {
      add(id, instruction.update && program.buffers[static_cast<std::size_t>(id)].kind == MemoryKind::variable);
    }
    for (int id : instruction.outputs) add(id, true);
    add(instruction.scratch, true);
    for (const Access& access : now) {
      for (const Access& before : earlier) {
        if (conflict(before, access))
          successors[static_cast<std::size_t>(before.instruction)].push_back(access.instruction);
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
    // Last, so that the others do not inherit where this thread may run.
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
                      const std::vector<int>& items, const std::function<void(int, int)>& body) {
  {
    const std::lock_guard lock(mutex_);
    successors_ = &successors;
    body_ = &body;
    waiting_for_.assign(predecessors.begin(), predecessors.end());
    left_ = static_cast<int>(items.size());
    error_ = nullptr;
    for (const int item : items) {
      if (waiting_for_[static_cast<std::size_t>(item)] == 0) ready_.push(item);
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
      ready_ = {};  // what has begun ends, nothing new begins
    } else {
      for (const int next : (*successors_)[static_cast<std::size_t>(item)]) {
        if (--waiting_for_[static_cast<std::size_t>(next)] == 0) ready_.push(next);
      }
    }
    wake_.notify_all();
  }
}

}  // namespace trireme
