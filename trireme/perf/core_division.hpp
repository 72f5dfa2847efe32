// Divides a machine's cores among its tasks, so that no two workers compete. Used by the launcher and by Worker;
// plan_threads() then plans the threads inside each task, seeing only its own processors.
#pragma once

#include <optional>
#include <vector>

namespace trireme::perf {

struct CoreDemand {
  int workers = 1;
  int servers = 0;
  int cores_per_worker = 0;  // 0: the rest divided evenly; a remainder stays idle
  // 0: servers share the workers' cores. Nothing: the same, unless there are so many cores that one each is no loss.
  std::optional<int> cores_per_server = {};
  bool oversubscribe = false;
};

struct CoreDivision {
  // Logical processors of each task, all siblings of its cores. Empty if the tasks share all cores, unbound.
  std::vector<std::vector<int>> workers, servers;
  int cores_per_worker = 0;
  int cores_per_server = 0;  // 0: those of all workers
  int idle_cores = 0;
  bool shared = false;
};

// `cores` as from Topology::usable_cores(); uses at most `core_limit` of them (a CPU quota). Error(bad_input) with the
// numbers if the demand is larger, unless oversubscription is allowed.
CoreDivision divide_cores(const std::vector<std::vector<int>>& cores, int core_limit, const CoreDemand& demand);

CoreDivision divide_this_machine(const CoreDemand& demand);  // within affinity mask and quota

}  // namespace trireme::perf
