// The Supervisor's record of its tasks: connected, running, or gone.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "trireme/cluster/channel.hpp"
#include "trireme/cluster/job_description.hpp"

namespace trireme::cluster {

struct TaskState {
  std::optional<Channel> channel = {};  // to its runner, or to the agent that waits for it
  bool reported = false;                // its runner has connected
  std::string host = {};
  int pid = 0;          // of its program; 0: not started yet
  int stopped_by = 0;   // signal
  bool trains = false;  // has begun its first step and told so
  bool over = false;    // ended, lost or never started
  bool lost = false;    // failed, and the job continues without it
  bool pinged = false;  // its host has not answered yet
};

class TaskStates {
 public:
  explicit TaskStates(const JobDescription& job) : job_(job), states_(job.tasks.size()) {}

  int count() const { return static_cast<int>(states_.size()); }
  TaskState& operator[](int task) { return states_.at(task); }
  bool is_worker(int task) const { return job_.tasks.at(task).role == kWorkerRole; }

  bool all_over() const { return left().empty(); }
  bool workers_over() const {  // or lost
    return std::ranges::none_of(left(), [this](int task) { return is_worker(task) && !states_[task].lost; });
  }
  bool any_runs() const {
    return std::ranges::any_of(states_,
                               [](const TaskState& state) { return state.channel && state.pid != 0 && !state.over; });
  }
  bool hosts_answer() const {  // all pinged ones, unless they are over
    return std::ranges::none_of(states_, [](const TaskState& state) { return state.pinged && !state.over; });
  }
  bool all_connected() const {
    return std::ranges::all_of(states_, [](const TaskState& state) { return state.channel.has_value(); });
  }
  bool all_train() const {  // all workers
    return those([](const TaskState& state) { return state.trains; }).size() == states_.size();
  }
  std::vector<int> missing() const {  // whose runners have not reported
    return those([](const TaskState& state) { return !state.reported && !state.over; });
  }
  std::vector<int> left() const {  // that are not over
    return those([](const TaskState& state) { return !state.over; });
  }
  std::vector<int> lost() const {
    return those([](const TaskState& state) { return state.lost; });
  }
  std::string full_name(int task) const {  // "rank 2 (host, pid 4711)"
    const TaskState& named = states_.at(task);
    const std::string pid = named.pid != 0 ? fmt::format(", pid {}", named.pid) : "";
    return fmt::format("{} ({}{})", job_.name(task), named.host, pid);
  }

  void tell(int task, const nlohmann::json& message) {  // does nothing if it is over
    TaskState& state = (*this)[task];
    if (state.channel && !state.over) state.channel->send(message);
  }
  void tell_all(const nlohmann::json& message) {
    for (int task = 0; task < count(); ++task) tell(task, message);
  }
  void tell_workers(const nlohmann::json& message) {
    for (int task = 0; task < count(); ++task) {
      if (is_worker(task)) tell(task, message);
    }
  }

 private:
  template <typename Condition>
  std::vector<int> those(const Condition& condition) const {
    std::vector<int> found;
    for (int task = 0; task < count(); ++task) {
      if (condition(states_[task])) found.push_back(task);
    }
    return found;
  }

  const JobDescription& job_;
  std::vector<TaskState> states_;
};

}  // namespace trireme::cluster
