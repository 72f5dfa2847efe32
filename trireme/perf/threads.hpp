// Threads of this process: how many compute threads there are and where they sit. Threads are planned from the machine
// and bound to cores, one per core; what was chosen is printed by the caller.
#pragma once

#include <string>
#include <vector>

namespace trireme::perf {

struct ThreadPlan {
  int intra_threads = 1;  // OpenMP team of one operation
  int inter_threads = 1;  // operations at the same time, each with a team of its own
  int groups = 1;         // groups of cores that a batch is split over, each with such teams
  // Logical processor (OS index) of every thread, team after team. Empty: not bound.
  std::vector<int> cores;
  int teams() const { return inter_threads * groups; }
  int threads() const { return intra_threads * teams(); }
  // "2 intra x 1 inter on processors 0,1"; of two teams: "on processors 0,1; 2,3". Groups, where there are several,
  // come first: "2 groups x 1 intra x 1 inter on processors 0; 1".
  std::string describe() const;
};

// 0 means choose: one inter thread, and as many intra threads as there are usable cores for each team. More threads
// than usable hardware threads is an Error(bad_input) with the numbers. Call it before apply(): a bound process sees
// only the processors it was bound to.
ThreadPlan plan_threads(int intra_threads, int inter_threads, bool bind = true, int groups = 1);
// Sets the size of the calling thread's OpenMP team and binds the threads of that team by hwloc, to the processors of
// this team. Call from each thread that will run operations, with the index of its team. OpenMP keeps the bound threads
// while every team of that thread has this size, or one thread.
void apply(const ThreadPlan& plan, int team = 0);

// OpenMP's threads wait for each other at the end of every operation by spinning, for milliseconds by default. If other
// programs want the cores, a thread spins away the time in which the one that it waits for could run. They shall spin
// for some tens of microseconds, which covers what they wait for on a quiet machine, and then sleep. libgomp reads that
// from the environment when it is loaded, so this starts the program anew, in the same process. Call it first in
// main(). Does nothing if the environment says how to wait (OMP_WAIT_POLICY, GOMP_SPINCOUNT).
void limit_spinning(char** arguments);

// Those that the calling thread may run on; all of a process that is not bound yet.
std::vector<int> usable_processors();
// Lets all threads of this process, or the calling one, run on these processors only. False where the system refuses.
[[nodiscard]] bool limit_process(const std::vector<int>& processors);
[[nodiscard]] bool limit_thread(const std::vector<int>& processors);

}  // namespace trireme::perf
