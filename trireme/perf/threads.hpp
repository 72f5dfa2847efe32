// Threads of this process: how many compute threads there are and where they sit. Threads are planned from the machine
// and bound to cores, one per core; what was chosen is printed by the caller.
#pragma once

#include <string>
#include <vector>

namespace trireme::perf {

struct ThreadPlan {
  int intra_threads = 1;  // OpenMP team of one operation
  int inter_threads = 1;  // operations at the same time, each with a team of its own
  // Logical processor (OS index) of every thread, team after team: intra_threads * inter_threads of them. Empty: not
  // bound.
  std::vector<int> cores;
  std::string describe() const;  // "2 intra x 1 inter on processors 0,1"; of two teams: "on processors 0,1; 2,3"
};

// 0 means choose: one inter thread, and one intra thread per usable core and inter thread. More threads than usable
// hardware threads is an Error(bad_input) with the numbers. Call it before apply(): a bound process sees only the
// processors it was bound to.
ThreadPlan plan_threads(int intra_threads, int inter_threads, bool bind = true);
// Sets the size of the calling thread's OpenMP team and binds the threads of that team by hwloc, to the processors of
// this inter thread. Call from each thread that will run operations, with its index. OpenMP keeps the bound threads
// while every team of that thread has this size, or one thread.
void apply(const ThreadPlan& plan, int inter_index = 0);

}  // namespace trireme::perf
