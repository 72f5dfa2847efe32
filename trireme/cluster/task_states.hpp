// What the Supervisor knows of the tasks of its job: who has connected, who runs, who is gone.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "trireme/cluster/channel.hpp"
#include "trireme/cluster/job.hpp"

namespace trireme::cluster {

struct TaskState {
  std::optional<Channel> channel = {};  // to its runner, or to the agent that waits for it
  bool reported = false;                // its runner is there
  std::string host = {};
  int pid = 0;          // of its program; 0: not started yet
  int stopped_by = 0;   // signal
  bool over = false;    // ended, lost or never started
  bool lost = false;    // it failed, and the job goes on without it
  bool pinged = false;  // and its host has not answered yet
};

class TaskStates {
 public:
  explicit TaskStates(const Job& job) : job_(job), states_(job.tasks.size()) {}

  int count() const { return static_cast<int>(states_.size()); }
  TaskState& operator[](int task) { return states_.at(task); }
  bool is_worker(int task) const { return job_.tasks.at(task).role == kWorkerRole; }

  bool all_over() const;
  bool workers_over() const;  // or lost
  bool any_runs() const;
  bool hosts_answer() const;  // all that were pinged, unless they are over
  bool all_connected() const;
  std::vector<int> missing() const;  // whose runners have not reported
  std::vector<int> left() const;     // that are not over
  std::vector<int> lost() const;
  std::string full_name(int task) const;  // "rank 2 (host, pid 4711)"

  void tell(int task, const nlohmann::json& message);  // nothing where it is over
  void tell_all(const nlohmann::json& message);
  void tell_workers(const nlohmann::json& message);

 private:
  template <typename Condition>
  std::vector<int> those(const Condition& condition) const;

  const Job& job_;
  std::vector<TaskState> states_;
};

}  // namespace trireme::cluster
