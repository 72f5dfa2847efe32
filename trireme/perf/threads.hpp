// Threads of this process: how many compute threads there are and where they sit. Threads are planned from the machine
// and bound to cores, one per core; what was chosen is printed by the caller.
#pragma once

#include <string>
#include <vector>

namespace trireme::perf {

struct ThreadPlan {
  int intra_threads = 1;         // OpenMP team of one operation
  int inter_threads = 1;         // operations at the same time
  std::vector<int> cores;        // logical processor (OS index) per intra thread; empty: not bound
  std::string describe() const;  // "2 intra x 1 inter on processors 0,1"
};

// 0 means choose: one inter thread, and one intra thread per usable core and inter thread. More threads than usable
// hardware threads is an Error(bad_input) with the numbers. With more than one inter thread nothing is bound: the teams
// come and go, and the threads that start them would inherit one processor. Call it before apply(): a bound process
// sees only the processors it was bound to.
ThreadPlan plan_threads(int intra_threads, int inter_threads, bool bind = true);
// Sets OpenMP's team size and binds its threads by hwloc. Call from the thread that will run steps. OpenMP keeps the
// bound threads while every team that follows has this size, or one thread.
void apply(const ThreadPlan& plan);

}  // namespace trireme::perf
