#include "trireme/perf/core_division.hpp"

#include <algorithm>
#include <iterator>

#include "trireme/base/error.hpp"
#include "trireme/perf/cgroup.hpp"
#include "trireme/perf/topology.hpp"

namespace trireme::perf {
namespace {

using Cores = std::vector<std::vector<int>>;

constexpr int kManyCoresPerServer = 8;  // enough that a worker hardly misses one

void check(const CoreDemand& demand) {
  if (demand.workers < 1) bad_input("--workers {}: must be at least 1", demand.workers);
  if (demand.servers < 0) bad_input("--ps {}: must be 0 or more", demand.servers);
  if (demand.cores_per_worker < 0) {
    bad_input("--threads-per-worker {}: must be at least 1, or 0 to divide the cores evenly", demand.cores_per_worker);
  }
  if (demand.cores_per_server.value_or(0) < 0) {
    bad_input("--threads-per-ps {}: must be at least 1, or 0 to share the workers' cores", *demand.cores_per_server);
  }
  if (demand.cores_per_server && demand.servers == 0) bad_input("--threads-per-ps has no effect without --ps");
}

// Divides, as the product of large numbers overflows.
bool fits(int tasks, int cores_per_task, int cores) { return tasks <= cores / cores_per_task; }

int cores_per_server(const CoreDemand& demand, int usable) {
  if (demand.cores_per_server) return *demand.cores_per_server;
  if (demand.servers == 0 || usable / demand.servers < kManyCoresPerServer) return 0;
  return fits(demand.workers, std::max(1, demand.cores_per_worker), usable - demand.servers) ? 1 : 0;
}

// "4 workers of 2 threads"
std::string demand_text(int tasks, const char* role, int threads) {
  return fmt::format("{} {}{} of {} thread{}", tasks, role, tasks == 1 ? "" : "s", threads, threads == 1 ? "" : "s");
}

[[noreturn]] void refuse(const CoreDemand& demand, const CoreDivision& division, int usable) {
  std::string text = demand_text(demand.workers, "worker", division.cores_per_worker);
  if (division.cores_per_server > 0) {
    text += " and " + demand_text(demand.servers, "server", division.cores_per_server);
  }
  bad_input(
      "{} each need more than the {} usable cores of this machine; ask for fewer, or let them share cores with "
      "--oversubscribe",
      text, usable);
}

// Gives each task its cores, starting at `core`.
Cores give_out(Cores::const_iterator core, int tasks, int cores_per_task) {
  Cores given(tasks);
  for (std::vector<int>& processors : given) {
    for (int i = 0; i < cores_per_task; ++i, ++core) {
      processors.insert(processors.end(), core->begin(), core->end());
    }
    std::ranges::sort(processors);
  }
  return given;
}

}  // namespace

CoreDivision divide_cores(const Cores& cores, int core_limit, const CoreDemand& demand) {
  check(demand);
  const int usable = std::min(static_cast<int>(cores.size()), core_limit);
  CoreDivision division;
  division.cores_per_server = cores_per_server(demand, usable);
  const bool servers_fit = division.cores_per_server == 0 || fits(demand.servers, division.cores_per_server, usable);
  const int for_servers = servers_fit ? demand.servers * division.cores_per_server : usable;
  const int for_workers = usable - for_servers;
  division.cores_per_worker =
      demand.cores_per_worker > 0 ? demand.cores_per_worker : std::max(1, for_workers / demand.workers);
  division.shared = !servers_fit || !fits(demand.workers, division.cores_per_worker, for_workers);
  if (division.shared && !demand.oversubscribe) refuse(demand, division, usable);
  division.workers.resize(demand.workers);
  division.servers.resize(demand.servers);
  if (division.shared) return division;
  division.idle_cores = for_workers - demand.workers * division.cores_per_worker;
  division.workers = give_out(cores.begin(), demand.workers, division.cores_per_worker);
  if (division.cores_per_server > 0) {
    division.servers = give_out(std::next(cores.begin(), for_workers), demand.servers, division.cores_per_server);
  } else if (demand.servers > 0) {
    const int used = demand.workers * division.cores_per_worker;
    std::ranges::fill(division.servers, give_out(cores.begin(), 1, used).front());
  }
  return division;
}

CoreDivision divide_this_machine(const CoreDemand& demand) {
  const auto cores = Topology().usable_cores();
  return divide_cores(cores, within_quota(static_cast<int>(cores.size()), cpu_quota()), demand);
}

}  // namespace trireme::perf
