#include "trireme/cluster/core_division.hpp"

#include <algorithm>

#include "trireme/base/error.hpp"
#include "trireme/perf/cgroup.hpp"
#include "trireme/perf/topology.hpp"

namespace trireme::cluster {

CoreDivision divide_cores(const std::vector<std::vector<int>>& cores, int core_limit, const CoreDemand& demand) {
  if (demand.tasks < 1) bad_input("--workers {}: must be at least 1", demand.tasks);
  if (demand.cores_per_task < 0) {
    bad_input("--threads-per-worker {}: must be at least 1, or 0 to divide the cores evenly", demand.cores_per_task);
  }
  const int usable = std::min(static_cast<int>(cores.size()), core_limit);
  CoreDivision division;
  division.cores_per_task = demand.cores_per_task > 0 ? demand.cores_per_task : std::max(1, usable / demand.tasks);
  // Divided, not multiplied: the product of large numbers overflows.
  division.shared = demand.tasks > usable / division.cores_per_task;
  if (division.shared && !demand.oversubscribe) {
    bad_input(
        "{} workers of {} thread{} each need more than the {} usable cores of this machine; ask for fewer, or let "
        "them share cores with --oversubscribe",
        demand.tasks, division.cores_per_task, division.cores_per_task == 1 ? "" : "s", usable);
  }
  division.processors.resize(static_cast<std::size_t>(demand.tasks));
  if (division.shared) return division;
  division.idle_cores = usable - demand.tasks * division.cores_per_task;
  auto core = cores.begin();
  for (std::vector<int>& processors : division.processors) {
    for (int i = 0; i < division.cores_per_task; ++i, ++core) {
      processors.insert(processors.end(), core->begin(), core->end());
    }
    std::sort(processors.begin(), processors.end());
  }
  return division;
}

CoreDivision divide_this_machine(const CoreDemand& demand) {
  const auto cores = perf::Topology().usable_cores();
  return divide_cores(cores, perf::within_quota(static_cast<int>(cores.size()), perf::cpu_quota()), demand);
}

}  // namespace trireme::cluster
