#include "trireme/cluster/task_states.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace trireme::cluster {

template <typename Condition>
std::vector<int> TaskStates::those(const Condition& condition) const {
  std::vector<int> found;
  for (int task = 0; task < count(); ++task) {
    if (condition(states_[task])) found.push_back(task);
  }
  return found;
}

bool TaskStates::all_over() const {
  return std::all_of(states_.begin(), states_.end(), [](const TaskState& state) { return state.over; });
}

bool TaskStates::workers_over() const {
  const auto going = those([](const TaskState& state) { return !state.over && !state.lost; });
  return std::none_of(going.begin(), going.end(), [this](int task) { return is_worker(task); });
}

bool TaskStates::any_runs() const {
  return std::any_of(states_.begin(), states_.end(),
                     [](const TaskState& state) { return state.channel && state.pid != 0 && !state.over; });
}

bool TaskStates::hosts_answer() const {
  return std::none_of(states_.begin(), states_.end(),
                      [](const TaskState& state) { return state.pinged && !state.over; });
}

bool TaskStates::all_connected() const {
  return std::all_of(states_.begin(), states_.end(), [](const TaskState& state) { return state.channel.has_value(); });
}

std::vector<int> TaskStates::missing() const {
  return those([](const TaskState& state) { return !state.reported && !state.over; });
}

std::vector<int> TaskStates::left() const {
  return those([](const TaskState& state) { return !state.over; });
}

std::vector<int> TaskStates::lost() const {
  return those([](const TaskState& state) { return state.lost; });
}

std::string TaskStates::full_name(int task) const {
  const TaskState& named = states_.at(task);
  const std::string pid = named.pid != 0 ? fmt::format(", pid {}", named.pid) : "";
  return fmt::format("{} ({}{})", job_.name(task), named.host, pid);
}

void TaskStates::tell(int task, const nlohmann::json& message) {
  TaskState& state = (*this)[task];
  if (state.channel && !state.over) state.channel->send(message);
}

void TaskStates::tell_all(const nlohmann::json& message) {
  for (int task = 0; task < count(); ++task) tell(task, message);
}

void TaskStates::tell_workers(const nlohmann::json& message) {
  for (int task = 0; task < count(); ++task) {
    if (is_worker(task)) tell(task, message);
  }
}

}  // namespace trireme::cluster
