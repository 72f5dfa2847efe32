// Decides after which task a stage of a pipeline waits for the end of a send, so that stages never wait for each other
// in a circle, even if a send ends only when its receive has begun. Private to plan/.
#pragma once

#include <vector>

namespace trireme {

// A tensor of a micro-batch on its way between two workers of a job.
struct Move {
  int number = 0;  // the same for both
  int from = 0, to = 0;
};

struct TaskMoves {
  std::vector<Move> arrivals, sends;  // first needed by the task; made by it
  // Those sends whose end is not waited for before the end of the step.
  std::vector<Move> long_sends = {};
};

// What a worker does, in order. Receives begin one task early.
using WorkerMoves = std::vector<TaskMoves>;

// By worker and task: numbers of the sends whose end is waited for after the task, usually those of the task before.
// Those that are missing end with the step.
std::vector<std::vector<std::vector<int>>> ends_of_sends(const std::vector<WorkerMoves>& workers);

}  // namespace trireme
