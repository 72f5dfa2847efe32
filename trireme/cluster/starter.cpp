#include "trireme/cluster/starter.hpp"

#include <fmt/format.h>

namespace trireme::cluster {

Starter process_starter(const std::string& program) {
  return [program](const Job& job, const std::string&) {
    std::vector<StartCommand> commands;
    for (int task = 0; task < std::ssize(job.tasks); ++task) {
      commands.push_back({.name = fmt::format("the runner of {}", job.name(task)),
                          .command = {program, "launch-task", "--task", std::to_string(task)},
                          .tasks = {task}});
    }
    return commands;
  };
}

}  // namespace trireme::cluster
