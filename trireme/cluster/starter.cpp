#include "trireme/cluster/starter.hpp"

#include <fmt/ranges.h>

#include <filesystem>

#include "trireme/cluster/channel.hpp"
#include "trireme/cluster/environment.hpp"

namespace trireme::cluster {
namespace {

std::vector<int> tasks_on(const JobDescription& job, const std::string& host) {
  std::vector<int> tasks;
  for (int i = 0; i < std::ssize(job.tasks); ++i) {
    if (job.tasks[i].host == host) tasks.push_back(i);
  }
  return tasks;
}

std::string list_text(const std::vector<int>& numbers) { return fmt::format("{}", fmt::join(numbers, ",")); }

// Everything runs in our current folder, if the host has one of that name.
std::string folder_option() { return "--folder=" + std::filesystem::current_path().string(); }

std::vector<std::string> agent_command(const RemoteHost& host, const std::vector<int>& tasks,
                                       const std::string& address) {
  std::vector<std::string> words{host.program, "launch-host", "--tasks=" + list_text(tasks), folder_option()};
  add_port_options(host.ports, words);
  if (!address.empty()) words.push_back("--address=" + address);
  return words;
}

RunnerCommand runner_command(const RemoteHost& host, const std::string& address) {
  return {.program = host.program,
          .words = {"env", fmt::format("{}={}", kLaunchVariable, address), host.program, "launch-task",
                    "--first-task=0", folder_option()},
          .job_id = address};
}

}  // namespace

Starter process_starter(const std::string& program) {
  return [program](const JobDescription& job, const std::string&) {
    std::vector<StartCommand> commands;
    for (int task = 0; task < std::ssize(job.tasks); ++task) {
      commands.push_back({.name = fmt::format("the runner of {}", job.name(task)),
                          .command = {program, "launch-task", "--task", std::to_string(task)},
                          .tasks = {task}});
    }
    return commands;
  };
}

void add_port_options(const PortsWanted& ports, std::vector<std::string>& words) {
  words.push_back(fmt::format("--workers={}", ports.tasks.workers));
  words.push_back(fmt::format("--ps={}", ports.tasks.servers));
  if (ports.first_worker) words.push_back(fmt::format("--worker-port={}", *ports.first_worker));
  if (ports.first_server) words.push_back(fmt::format("--ps-port={}", *ports.first_server));
}

Starter host_starter(const std::string& program, const HostReach& reach, const std::vector<RemoteHost>& hosts,
                     const RunnerStarter& runners) {
  return [=](const JobDescription& job, const std::string& folder) {
    const std::string address = runners ? random_address() : "";
    std::vector<StartCommand> commands;
    for (const RemoteHost& host : hosts) {
      const std::vector<int> tasks = tasks_on(job, host.name);
      std::vector<std::string> command{program, "launch-relay", "--"};
      const auto reached = reach.command(host.name, agent_command(host, tasks, address));
      command.insert(command.end(), reached.begin(), reached.end());
      commands.push_back({.name = fmt::format("{} to {}", reach.name, host.name),
                          .command = command,
                          .tasks = tasks,
                          .reaches_other_host = true});
    }
    if (!runners) return commands;
    commands.push_back(runners(job, folder, runner_command(hosts.front(), address)));
    commands.back().waits_for_hosts = true;
    return commands;
  };
}

}  // namespace trireme::cluster
