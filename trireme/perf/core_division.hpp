// How the cores of one machine are given out to the tasks on it, so that no two workers compete. Used by the launcher;
// the threads inside a task are then planned by plan_threads(), which sees the task's own processors only.
#pragma once

#include <optional>
#include <vector>

namespace trireme::perf {

struct CoreDemand {
  int workers = 1;
  int servers = 0;
  int cores_per_worker = 0;  // 0: what is left divided evenly; what does not divide is left idle
  // 0: servers share the workers' cores. Nothing: they do, unless there are so many that one each is no loss.
  std::optional<int> cores_per_server = {};
  bool oversubscribe = false;
};

struct CoreDivision {
  // Logical processors of each task, all siblings of its cores. Empty where the tasks share all cores, unbound.
  std::vector<std::vector<int>> workers, servers;
  int cores_per_worker = 0;
  int cores_per_server = 0;  // 0: those of all workers
  int idle_cores = 0;
  bool shared = false;
};

// The cores are given as Topology::usable_cores() has them; at most `core_limit` of them are used (a CPU quota). More
// than there are is an Error(bad_input) with the numbers, unless oversubscription is asked for.
CoreDivision divide_cores(const std::vector<std::vector<int>>& cores, int core_limit, const CoreDemand& demand);

// Of this machine, within its affinity mask and quota.
CoreDivision divide_this_machine(const CoreDemand& demand);

}  // namespace trireme::perf
