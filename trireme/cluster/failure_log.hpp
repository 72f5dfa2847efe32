// Collects a job's failures and finds the first. One failure causes others (a dead worker makes its peers fail), and
// messages arrive in any order. So failures are collected for a moment, and the one with the most direct cause counts
// as first. Used by the Supervisor, also to decide whether the job continues.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "trireme/cluster/job_description.hpp"

namespace trireme::cluster {

enum class Cause {  // later ones are closer to the origin
  starter_ended,    // often because a task did
  error,            // a task's own message or exit code; may be about a peer
  lost,             // a task's connection ended without notice
  killed,           // by a signal that we did not send; mpirun kills its other ranks when a host is gone
  host_lost,        // a task's host is unreachable
  not_started,
};

struct Failure {
  Cause cause = Cause::error;
  int task = -1;      // -1: no task
  std::string who;    // "rank 2 (host, pid 4711)"
  std::string what;   // " was killed by signal 9": follows `who`
  int exit_code = 1;  // the job's, if this failure is the first
};

class FailureLog {
 public:
  void add(Failure failure);  // ignores a task's second failure, which follows its error message
  bool empty() const { return failures_.empty(); }
  const std::vector<Failure>& all() const { return failures_; }  // in order of arrival
  void settle();                                                 // fixes which one is first
  const Failure& first() const { return failures_[first_]; }     // after settle()
  std::vector<std::string> others() const;  // other failures with different messages, shortened; at most a few

 private:
  std::vector<Failure> failures_;
  std::size_t first_ = 0;
};

// Whether the others could do without the task that failed, and the reason is its own.
bool is_survivable(const JobDescription& job, const Failure& failure);
int workers_left(const JobDescription& job, const std::vector<Failure>& failures, const std::vector<int>& lost);
// Whether the job continues: only dispensable workers have failed, for no shared reason, and enough workers remain.
bool survives(const JobDescription& job, const std::vector<Failure>& failures, const std::vector<int>& lost);

}  // namespace trireme::cluster
