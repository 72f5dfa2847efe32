// What went wrong in a job, and which of it was first. One failure brings others: a worker that dies makes its peers
// fail in their next exchange, and whose message arrives first is a matter of luck. So failures are collected for a
// moment before one is taken as the first, by how directly its cause is known. Used by the Supervisor, which also asks
// whether the job goes on.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "trireme/cluster/job_description.hpp"

namespace trireme::cluster {

enum class Cause {  // the later, the closer to the origin
  starter_ended,    // often because a task did
  error,            // a task's own words or exit code: may be about a peer
  lost,             // the connection to a task ended without a word
  killed,           // by a signal that we did not send; mpirun kills its other ranks when a host has gone
  host_lost,        // the host of a task is out of reach
  not_started,
};

struct Failure {
  Cause cause = Cause::error;
  int task = -1;      // -1: of no task
  std::string who;    // "rank 2 (host, pid 4711)"
  std::string what;   // " was killed by signal 9": follows who
  int exit_code = 1;  // that the job ends with, should this be the first
};

class FailureLog {
 public:
  // A second failure of the same task is no news: it ends after its words.
  void add(Failure failure);
  bool empty() const { return failures_.empty(); }
  const std::vector<Failure>& all() const { return failures_; }  // as they came
  void settle();                                                 // what is first stays so from now on
  const Failure& first() const { return failures_[first_]; }     // after settle()
  // All others that have something else to say, shortened; a few at most.
  std::vector<std::string> others() const;

 private:
  std::vector<Failure> failures_;
  std::size_t first_ = 0;
};

// Whether a job goes on: workers alone have failed that the others can do without, by nothing that they share, and a
// worker is left beside these and the ones that were lost before.
bool survives(const JobDescription& job, const std::vector<Failure>& failures, const std::vector<int>& lost);

}  // namespace trireme::cluster
