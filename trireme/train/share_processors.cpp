#include "trireme/train/share_processors.hpp"

#include <fmt/format.h>
#include <sched.h>

#include "trireme/base/error.hpp"
#include "trireme/comm/collectives.hpp"
#include "trireme/perf/core_division.hpp"
#include "trireme/perf/threads.hpp"

namespace trireme::train {
namespace {

cpu_set_t affinity() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0) {
    fail(ErrorKind::failed, "the system does not say on which processors this process may run");
  }
  return set;
}

}  // namespace

std::string share_processors(comm::Communicator& workers) {
  workers.set_context("dividing the processors");
  const cpu_set_t mine = affinity();
  const std::vector<cpu_set_t> all = comm::all_gather_value(workers, mine);
  int before = 0, sharing = 0;  // workers of this machine with the same processors: those of lower rank, and all
  for (int rank = 0; rank < workers.size(); ++rank) {
    if (workers.members()[rank].node != workers.self().node) continue;
    if (!CPU_EQUAL(&all[rank], &mine)) continue;
    ++sharing;
    if (rank < workers.rank()) ++before;
  }
  if (sharing == 1) return "";
  const perf::CoreDivision division = perf::divide_this_machine({.workers = sharing, .oversubscribe = true});
  if (division.shared) {
    return fmt::format("{} workers on {} share {} processors: they slow each other down", sharing, workers.self().host,
                       CPU_COUNT(&mine));
  }
  // All threads: threads are planned from what the process may use, and MPI has started some already.
  if (!perf::limit_process(division.workers[before])) {
    return "the system refuses to keep this worker on processors of its own";
  }
  return "";
}

}  // namespace trireme::train
