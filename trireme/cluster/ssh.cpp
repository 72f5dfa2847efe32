#include "trireme/cluster/ssh.hpp"

#include <fmt/ranges.h>

#include <array>
#include <cctype>
#include <filesystem>
#include <string_view>

#include "trireme/base/error.hpp"
#include "trireme/cluster/shell_text.hpp"

namespace trireme::cluster {
namespace {

constexpr int kSshFailed = 255;
// A host that goes away is noticed by the agent and the relay themselves, earlier; what has no agent needs the last
// two.
constexpr std::array kOptions{"-T",
                              "-o",
                              "BatchMode=yes",
                              "-o",
                              "ConnectTimeout=10",
                              "-o",
                              "ServerAliveInterval=10",
                              "-o",
                              "ServerAliveCountMax=3"};

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

std::vector<std::string> ssh_command(const SshOptions& ssh, const std::string& host,
                                     const std::vector<std::string>& command) {
  if (find_program("ssh").empty()) {
    fail(ErrorKind::unavailable, "other hosts are reached by ssh, which is not in PATH; install openssh-client");
  }
  std::vector<std::string> words{"ssh"};
  words.insert(words.end(), kOptions.begin(), kOptions.end());
  const auto add = [&words](const std::string& option, const std::string& value) {
    if (!value.empty()) words.insert(words.end(), {option, value});
  };
  add("-F", ssh.config);
  add("-i", ssh.key);
  if (!ssh.key.empty()) add("-o", "IdentitiesOnly=yes");
  add("-l", ssh.user);
  if (ssh.port) add("-p", std::to_string(*ssh.port));
  words.insert(words.end(), {host, "exec " + shell_line(command)});
  return words;
}

std::string ssh_problem(const Ending& ending, const std::string& words) {
  if (ending.exit_code() != kSshFailed) return "";
  if (words.find("Permission denied") == std::string::npos) return fmt::format("ssh does not reach it: {}", words);
  return fmt::format("ssh is refused: {}; is the key (--ssh-key) among those of that user (--ssh-user) there?", words);
}

std::string last_line(std::string text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0) text.pop_back();
  text.erase(0, text.find_last_of('\n') + 1);
  constexpr std::string_view kOurs = "trireme: error: ";
  if (text.starts_with(kOurs)) text.erase(0, kOurs.size());
  return text;
}

Starter ssh_starter(const std::string& program, const SshOptions& ssh, const std::vector<RemoteHost>& hosts) {
  return [program, ssh, hosts](const Job& job, const std::string&) {
    std::vector<StartCommand> commands;
    for (const RemoteHost& host : hosts) {
      const std::vector<int> tasks = tasks_on(job, host.name);
      std::vector<std::string> command{program, "launch-relay", "--"};
      const auto reached = ssh_command(ssh, host.name, agent_command(host, tasks));
      command.insert(command.end(), reached.begin(), reached.end());
      commands.push_back({.name = fmt::format("ssh to {}", host.name),
                          .command = command,
                          .tasks = tasks,
                          .reaches_other_host = true});
    }
    return commands;
  };
}

}  // namespace trireme::cluster
