#include "trireme/cluster/host_reach.hpp"

#include <cctype>
#include <sstream>
#include <string_view>

#include "trireme/base/error.hpp"
#include "trireme/base/shell_text.hpp"
#include "trireme/cluster/child_process.hpp"

namespace trireme::cluster {
namespace {

constexpr int kSshFailed = 255;

std::string explain_ssh(int code, const std::string& words) {
  if (code != kSshFailed) return "";
  if (words.empty()) return "ssh cannot reach it, or lost the connection";
  if (words.find("Permission denied") == std::string::npos) return fmt::format("ssh cannot reach it: {}", words);
  return fmt::format("ssh was refused: {}; does that user (--ssh-user) accept the key (--ssh-key) there?", words);
}

// Variables that tell at which address the host was reached; most containers would drop them.
constexpr const char* kVariables =
    R"sh(env ${SSH_CONNECTION:+"SSH_CONNECTION=$SSH_CONNECTION"} )sh"
    R"sh(${SLURM_LAUNCH_NODE_IPADDR:+"SLURM_LAUNCH_NODE_IPADDR=$SLURM_LAUNCH_NODE_IPADDR"} )sh"
    R"sh(${SLURM_CPUS_ON_NODE:+"SLURM_CPUS_ON_NODE=$SLURM_CPUS_ON_NODE"})sh";

// Requires a single shell command.
void check_is_one_command(const std::string& text) {
  char quote = 0;
  bool at_word = true, has_words = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != 0) {
      if (c == quote) quote = 0;
      if (c == '\\' && quote == '"') ++i;
      continue;
    }
    if (std::string_view(";|&<>\n").find(c) != std::string_view::npos || (c == '#' && at_word)) {
      bad_input(
          "--exec '{}': '{}' at position {}: must be a single command; quote the character if it is part of a word",
          text, c == '\n' ? "\\n" : std::string(1, c), i + 1);
    }
    if (c == '\\' && ++i == text.size()) bad_input("--exec '{}': ends with a backslash", text);
    if (c == '\'' || c == '"') quote = c;
    at_word = c == ' ' || c == '\t';
    has_words = has_words || !at_word;
  }
  if (quote != 0) bad_input("--exec '{}': the quote {} is not closed", text, quote);
  if (!has_words) bad_input("--exec: is empty; give a command, as in --exec 'apptainer exec image.sif'");
}

// Docker and Podman have an exit code for their own failures; Apptainer uses ssh's.
std::string explain_container(const HostReach& reach, int code, const std::string& words) {
  constexpr int kContainerFailed = 125;
  if (code == kContainerFailed || words.starts_with("FATAL:")) {
    return fmt::format("the container of --exec cannot be started: {}", words);
  }
  if (code == kCannotBeRun || code == kNoSuchProgram) {
    return fmt::format(
        "the command of --exec, or trireme in it, does not exist or cannot be run ({}); give trireme's path with "
        "--remote-program",
        words);
  }
  return reach.failure(code, words);
}

}  // namespace

std::string last_words(const std::string& complaints, const HostReach& reach) {
  std::istringstream lines(complaints);
  std::string text, of_reach;
  for (std::string line; std::getline(lines, line);) {
    while (!line.empty() && std::isspace(static_cast<unsigned char>(line.back())) != 0) line.pop_back();
    if (!line.empty()) (line.starts_with(reach.name + ": ") ? of_reach : text) = line;
  }
  if (text.empty()) text = of_reach;
  constexpr std::string_view kOurs = "trireme: error: ";
  if (text.starts_with(kOurs)) text.erase(0, kOurs.size());
  return text;
}

std::vector<std::string> ssh_words(const SshOptions& ssh) {
  if (find_program("ssh").empty()) {
    fail(ErrorKind::unavailable, "other hosts are reached by ssh, which is not in PATH; install openssh-client");
  }
  // LogLevel: hides banners, which are not failures. ServerAlive: detects a lost peer without an agent.
  std::vector<std::string> words{"ssh", "-T",
                                 "-o",  "BatchMode=yes",
                                 "-o",  "LogLevel=ERROR",
                                 "-o",  "ConnectTimeout=10",
                                 "-o",  "ServerAliveInterval=5",
                                 "-o",  "ServerAliveCountMax=4"};
  const auto add = [&words](const std::string& option, const std::string& value) {
    if (!value.empty()) words.insert(words.end(), {option, value});
  };
  add("-F", ssh.config);
  add("-i", ssh.key);
  if (!ssh.key.empty()) add("-o", "IdentitiesOnly=yes");
  add("-l", ssh.user);
  if (ssh.port) add("-p", std::to_string(*ssh.port));
  return words;
}

HostReach ssh_reach(const SshOptions& ssh) {
  const auto command = [ssh](const std::string& host, const std::vector<std::string>& words) {
    std::vector<std::string> line = ssh_words(ssh);
    line.insert(line.end(), {host, "exec " + shell_line(words)});
    return line;
  };
  return {.name = "ssh", .command = command, .failure = explain_ssh};
}

HostReach inside(const HostReach& reach, const std::string& prefix) {
  check_is_one_command(prefix);
  const std::string script = fmt::format("exec {} {} \"$@\"", prefix, kVariables);
  const auto command = [reach, script](const std::string& host, const std::vector<std::string>& words) {
    std::vector<std::string> wrapped{"sh", "-c", script, "sh"};
    wrapped.insert(wrapped.end(), words.begin(), words.end());
    return reach.command(host, wrapped);
  };
  const auto failure = [reach](int code, const std::string& words) { return explain_container(reach, code, words); };
  return {.name = reach.name, .command = command, .failure = failure, .is_container = true};
}

}  // namespace trireme::cluster
