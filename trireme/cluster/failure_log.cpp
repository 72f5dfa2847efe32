#include "trireme/cluster/failure_log.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "trireme/base/error.hpp"

namespace trireme::cluster {
namespace {

constexpr std::size_t kShownOthers = 3, kShownCharacters = 160;

std::string shortened(const std::string& text) {
  return text.size() <= kShownCharacters ? text : text.substr(0, kShownCharacters) + "...";
}

bool is_worker(const JobDescription& job, int task) { return task >= 0 && job.tasks.at(task).role == kWorkerRole; }

}  // namespace

bool is_survivable(const JobDescription& job, const Failure& failure) {
  // An error may come from the data or the network: it would end the others, too, one by one.
  if (job.least_workers > 0 && failure.cause == Cause::error) return false;
  // Bad input of one task is bad for all, and a machine that lacks something always did.
  const bool is_misuse = failure.cause == Cause::error && error_kind(failure.exit_code) != ErrorKind::failed;
  if (job.needs_first_worker && failure.task == 0) return false;
  return is_worker(job, failure.task) && failure.cause != Cause::not_started && !is_misuse;
}

void FailureLog::add(Failure failure) {
  const bool known = std::ranges::any_of(
      failures_, [&](const Failure& other) { return failure.task >= 0 && other.task == failure.task; });
  if (!known) failures_.push_back(std::move(failure));
}

void FailureLog::settle() {
  const auto first =
      std::ranges::max_element(failures_, [](const Failure& a, const Failure& b) { return a.cause < b.cause; });
  first_ = first - failures_.begin();
}

std::vector<std::string> FailureLog::others() const {
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < failures_.size(); ++i) {
    const Failure& failure = failures_[i];
    if (i == first_ || failure.cause != Cause::error || failure.what == first().what) continue;
    texts.push_back(failure.who + shortened(failure.what));
  }
  if (texts.size() > kShownOthers) {
    const std::size_t more = texts.size() - kShownOthers;
    texts.resize(kShownOthers);
    texts.push_back(fmt::format("and {} more", more));
  }
  return texts;
}

bool survives(const JobDescription& job, const std::vector<Failure>& failures, const std::vector<int>& lost) {
  if (!job.survives_lost_workers) return false;
  if (!std::ranges::all_of(failures, [&](const Failure& f) { return is_survivable(job, f); })) {
    return false;
  }
  return workers_left(job, failures, lost) >= std::max(1, job.least_workers);
}

int workers_left(const JobDescription& job, const std::vector<Failure>& failures, const std::vector<int>& lost) {
  const auto workers = std::ranges::count_if(job.tasks, [](const Task& task) { return task.role == kWorkerRole; });
  return static_cast<int>(workers - std::ssize(failures) - std::ssize(lost));  // each failed task is listed once
}

}  // namespace trireme::cluster
