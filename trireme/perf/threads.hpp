// The compute threads of this process: plans their number for the machine and pins them, one per core.
#pragma once

#include <string>
#include <vector>

namespace trireme::perf {

struct ThreadPlan {
  int intra_threads = 1;   // OpenMP team of one operation
  int inter_threads = 1;   // concurrent operations, each with its own team
  int groups = 1;          // core groups that a batch is split over, each with such teams
  std::vector<int> cores;  // logical processor (OS index) of every thread, team after team; empty: not bound
  int teams() const { return inter_threads * groups; }
  int threads() const { return intra_threads * teams(); }
  // "2 intra x 1 inter on processors 0,1"; two teams: "on processors 0,1; 2,3". Several groups come first: "2 groups x
  // 1 intra x 1 inter on processors 0; 1".
  std::string describe() const;
};

// 0 means choose: one inter thread, and all usable cores of a team as intra threads. Error(bad_input) if there are more
// threads than usable hardware threads. Call before apply(): a bound process sees only its own processors.
ThreadPlan plan_threads(int intra_threads, int inter_threads, bool bind = true, int groups = 1);
// Sets the size of the calling thread's OpenMP team and binds its threads to the team's processors with hwloc. Call
// from each thread that will run operations, with its team's index. OpenMP keeps the bound threads as long as every
// team of that thread has this size, or one thread.
void apply(const ThreadPlan& plan, int team = 0);

std::vector<int> usable_processors();  // of the calling thread; of the process if it is not bound yet
// Restricts all threads of this process, or the calling one, to these processors. False if the system refuses.
[[nodiscard]] bool limit_process(const std::vector<int>& processors);
[[nodiscard]] bool limit_thread(const std::vector<int>& processors);

}  // namespace trireme::perf
