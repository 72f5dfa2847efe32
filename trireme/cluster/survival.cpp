#include "trireme/cluster/survival.hpp"

#include <algorithm>

#include "trireme/base/exit_code.hpp"

namespace trireme::cluster {
namespace {

bool is_worker(const Job& job, int task) { return task >= 0 && job.tasks.at(task).role == kWorkerRole; }

bool is_survivable(const Job& job, const Failure& failure) {
  // What was wrong with the input of one is wrong with that of all, and what a machine lacks it has never had.
  const bool is_misuse = failure.cause == Cause::error && error_kind(failure.exit_code) != ErrorKind::failed;
  if (job.needs_first_worker && failure.task == 0) return false;
  return is_worker(job, failure.task) && failure.cause != Cause::not_started && !is_misuse;
}

}  // namespace

bool survives(const Job& job, const std::vector<Failure>& failures, const std::vector<int>& lost) {
  if (!job.survives_lost_workers) return false;
  if (!std::all_of(failures.begin(), failures.end(), [&](const Failure& f) { return is_survivable(job, f); })) {
    return false;
  }
  const auto workers =
      std::count_if(job.tasks.begin(), job.tasks.end(), [](const Task& task) { return task.role == kWorkerRole; });
  return static_cast<std::size_t>(workers) > failures.size() + lost.size();  // each is there once
}

}  // namespace trireme::cluster
