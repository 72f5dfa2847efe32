#include "trireme/cluster/host_starter.hpp"

#include <fmt/ranges.h>

#include <filesystem>

namespace trireme::cluster {
namespace {

std::vector<int> tasks_on(const Job& job, const std::string& host) {
  std::vector<int> tasks;
  for (std::size_t i = 0; i < job.tasks.size(); ++i) {
    if (job.tasks[i].host == host) tasks.push_back(static_cast<int>(i));
  }
  return tasks;
}

std::string list_text(const std::vector<int>& numbers) { return fmt::format("{}", fmt::join(numbers, ",")); }

// The agent works in the folder that we are in, where its host has one of that name.
std::vector<std::string> agent_command(const RemoteHost& host, const std::vector<int>& tasks) {
  return {host.program, "launch-host", "--tasks=" + list_text(tasks), "--ports=" + list_text(host.ports),
          "--folder=" + std::filesystem::current_path().string()};
}

}  // namespace

Starter host_starter(const std::string& program, const HostReach& reach, const std::vector<RemoteHost>& hosts) {
  return [=](const Job& job, const std::string&) {
    std::vector<StartCommand> commands;
    for (const RemoteHost& host : hosts) {
      const std::vector<int> tasks = tasks_on(job, host.name);
      std::vector<std::string> command{program, "launch-relay", "--"};
      const auto reached = reach.command(host.name, agent_command(host, tasks));
      command.insert(command.end(), reached.begin(), reached.end());
      commands.push_back({.name = fmt::format("{} to {}", reach.name, host.name),
                          .command = command,
                          .tasks = tasks,
                          .reaches_other_host = true});
    }
    return commands;
  };
}

}  // namespace trireme::cluster
