#include "trireme/plan/send_ends.hpp"

#include <algorithm>
#include <set>

#include "trireme/base/error.hpp"

namespace trireme {
namespace {

// Runs all workers, without time. If they come to a standstill, one of them waits for a send one task later.
class Rehearsal {
 public:
  explicit Rehearsal(const std::vector<WorkerMoves>& moves)
      : moves_(moves), workers_(moves.size()), due_(moves.size()) {
    for (std::size_t w = 0; w < moves.size(); ++w) {
      due_[w].resize(moves[w].size());
      for (std::size_t task = 1; task < moves[w].size(); ++task) due_[w][task] = moves[w][task - 1].sends;
    }
  }

  std::vector<std::vector<std::vector<int>>> run() {
    while (true) {
      run_until_all_wait();
      const auto waiting = std::ranges::find_if(workers_, [](const Worker& each) { return each.waits_for != nullptr; });
      if (waiting == workers_.end()) break;
      defer_in_circle_from(static_cast<std::size_t>(waiting - workers_.begin()));
    }
    std::vector<std::vector<std::vector<int>>> numbers(due_.size());
    for (std::size_t w = 0; w < due_.size(); ++w) {
      for (const std::vector<Move>& of_task : due_[w]) {
        auto& list = numbers[w].emplace_back();
        for (const Move& move : of_task) list.push_back(move.number);
      }
    }
    return numbers;
  }

 private:
  struct Worker {
    std::size_t task = 0;
    std::size_t arrived = 0, ended = 0;  // waits of the task that are over
    bool has_begun = false, has_sent = false;
    const Move* waits_for = nullptr;
    bool waits_for_send = false;
  };

  void run_until_all_wait() {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t w = 0; w < workers_.size(); ++w) moved = run(w) || moved;
    }
  }

  // Until it has to wait; whether it did anything.
  bool run(std::size_t w) {
    Worker& worker = workers_[w];
    worker.waits_for = nullptr;
    bool moved = false;
    for (; worker.task < moves_[w].size(); moved = true) {
      const TaskMoves& task = moves_[w][worker.task];
      if (!worker.has_begun) {
        if (worker.task == 0) begin(task.arrivals, receives_);
        if (worker.task + 1 < moves_[w].size()) begin(moves_[w][worker.task + 1].arrivals, receives_);
        moved = worker.has_begun = true;
      }
      for (; worker.arrived < task.arrivals.size(); ++worker.arrived, moved = true) {
        const Move& arrival = task.arrivals[worker.arrived];
        if (!sends_.contains(arrival.number)) {
          worker.waits_for = &arrival;
          worker.waits_for_send = false;
          return moved;
        }
      }
      if (!worker.has_sent) {
        begin(task.sends, sends_);
        begin(task.long_sends, sends_);
        moved = worker.has_sent = true;
      }
      const std::vector<Move>& due = due_[w][worker.task];
      for (; worker.ended < due.size(); ++worker.ended, moved = true) {
        if (!receives_.contains(due[worker.ended].number)) {
          worker.waits_for = &due[worker.ended];
          worker.waits_for_send = true;
          return moved;
        }
      }
      worker = {.task = worker.task + 1};
    }
    return moved;
  }

  static void begin(const std::vector<Move>& moves, std::set<int>& begun) {
    for (const Move& move : moves) begun.insert(move.number);
  }

  // Everybody who waits, waits for somebody who does, so there is a circle.
  void defer_in_circle_from(std::size_t w) {
    const auto next = [this](std::size_t at) {
      const Worker& worker = workers_[at];
      if (worker.waits_for == nullptr) fail(ErrorKind::failed, "a stage waits for a message that no other one has");
      return static_cast<std::size_t>(worker.waits_for_send ? worker.waits_for->to : worker.waits_for->from);
    };
    std::set<std::size_t> seen;
    while (seen.insert(w).second) w = next(w);
    const std::size_t first = w;
    while (!workers_[w].waits_for_send) {
      w = next(w);
      if (w == first) fail(ErrorKind::failed, "the stages of the pipeline would wait for each other forever");
    }
    Worker& worker = workers_[w];
    const Move move = *worker.waits_for;
    auto& now = due_[w][worker.task];
    now.erase(now.begin() + static_cast<std::ptrdiff_t>(worker.ended));
    if (worker.task + 1 < due_[w].size()) due_[w][worker.task + 1].push_back(move);
  }

  const std::vector<WorkerMoves>& moves_;
  std::vector<Worker> workers_;
  std::vector<std::vector<std::vector<Move>>> due_;  // [worker][task]
  std::set<int> receives_, sends_;                   // that have begun
};

}  // namespace

std::vector<std::vector<std::vector<int>>> ends_of_sends(const std::vector<WorkerMoves>& workers) {
  return Rehearsal(workers).run();
}

}  // namespace trireme
