#include "trireme/perf/threads.hpp"

#include <omp.h>

#include <algorithm>
#include <optional>

#include "trireme/base/error.hpp"
#include "trireme/perf/cgroup.hpp"
#include "trireme/perf/topology.hpp"

namespace trireme::perf {
namespace {

// One processor of each core, then the second of each, and so on.
std::vector<int> cores_first(const std::vector<std::vector<int>>& cores) {
  std::vector<int> processors;
  for (std::size_t sibling = 0;; ++sibling) {
    const std::size_t before = processors.size();
    for (const auto& core : cores) {
      if (sibling < core.size()) processors.push_back(core[sibling]);
    }
    if (processors.size() == before) return processors;
  }
}

std::string limits(int usable_threads, int usable_cores, std::optional<double> quota) {
  std::string text = fmt::format("{} usable hardware threads ({} cores)", usable_threads, usable_cores);
  if (quota) text += fmt::format(" under a CPU quota of {:.3g}", *quota);
  return text;
}

}  // namespace

std::string ThreadPlan::describe() const {
  std::string where;
  for (std::size_t i = 0; i < cores.size(); ++i) {
    const bool starts_team = i % static_cast<std::size_t>(intra_threads) == 0;
    where += fmt::format("{}{}", i == 0 ? "on processors " : starts_team ? "; " : ",", cores[i]);
  }
  return fmt::format("{}{} intra x {} inter {}", groups > 1 ? fmt::format("{} groups x ", groups) : "", intra_threads,
                     inter_threads, where.empty() ? "not bound" : where);
}

ThreadPlan plan_threads(int intra_threads, int inter_threads, bool bind, int groups) {
  if (intra_threads < 0 || inter_threads < 0 || groups < 1) {
    bad_input(
        "cannot use {} intra and {} inter threads in {} groups; give positive numbers, or 0 threads to choose them "
        "automatically",
        intra_threads, inter_threads, groups);
  }
  const auto cores = Topology().usable_cores();
  const auto processors = cores_first(cores);
  const auto quota = cpu_quota();
  const int usable_cores = within_quota(static_cast<int>(cores.size()), quota);
  const int usable_threads = within_quota(static_cast<int>(processors.size()), quota);

  ThreadPlan plan;
  plan.inter_threads = std::max(1, inter_threads);
  plan.groups = groups;
  // Divides, as the product of large numbers overflows.
  const int for_one_team = usable_threads / groups / plan.inter_threads;
  plan.intra_threads = intra_threads > 0 ? intra_threads : std::max(1, usable_cores / groups / plan.inter_threads);
  if (plan.intra_threads > for_one_team && groups > 1) {
    bad_input("{} groups of {} threads are more than the {}; lower --batch-split or --num-intra-threads", groups,
              plan.intra_threads, limits(usable_threads, usable_cores, quota));
  }
  if (plan.intra_threads > for_one_team) {
    bad_input("{} intra x {} inter threads are more than the {}; lower --num-intra-threads or --num-inter-threads",
              plan.intra_threads, plan.inter_threads, limits(usable_threads, usable_cores, quota));
  }
  if (bind) plan.cores.assign(processors.begin(), processors.begin() + plan.threads());
  return plan;
}

void apply(const ThreadPlan& plan, int team_index) {
  omp_set_dynamic(0);
  omp_set_num_threads(plan.intra_threads);
  if (plan.cores.empty()) return;
  if (team_index < 0 || team_index >= plan.teams()) {
    bad_input("there is no team {} among {}; they count from 0", team_index, plan.teams());
  }
  const Topology topology;
  const auto* const team = plan.cores.data() + team_index * plan.intra_threads;
  int refused = -1;  // an exception must not leave the parallel region
  // Each thread separately: a new one inherits the single processor of its creator.
#pragma omp parallel num_threads(plan.intra_threads)
  {
    const int processor = team[omp_get_thread_num()];
    if (!topology.limit_this_thread({processor})) {
#pragma omp critical
      refused = processor;
    }
  }
  if (refused >= 0) fail(ErrorKind::failed, "the system refuses to bind a thread to processor {}", refused);
}

bool limit_process(const std::vector<int>& processors) { return Topology().limit_this_process(processors); }

bool limit_thread(const std::vector<int>& processors) { return Topology().limit_this_thread(processors); }

std::vector<int> usable_processors() {
  std::vector<int> processors;
  for (const std::vector<int>& core : Topology().usable_cores()) {
    processors.insert(processors.end(), core.begin(), core.end());
  }
  return processors;
}

}  // namespace trireme::perf
