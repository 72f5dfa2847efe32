#include "trireme/cluster/ssh.hpp"

#include "trireme/base/error.hpp"
#include "trireme/cluster/child_process.hpp"
#include "trireme/cluster/shell_text.hpp"

namespace trireme::cluster {
namespace {

constexpr int kSshFailed = 255;

std::string explain(int code, const std::string& words) {
  if (code != kSshFailed) return "";
  if (words.empty()) return "ssh does not reach it, or has lost it on the way";
  if (words.find("Permission denied") == std::string::npos) return fmt::format("ssh does not reach it: {}", words);
  return fmt::format("ssh is refused: {}; is the key (--ssh-key) among those of that user (--ssh-user) there?", words);
}

}  // namespace

std::vector<std::string> ssh_words(const SshOptions& ssh) {
  if (find_program("ssh").empty()) {
    fail(ErrorKind::unavailable, "other hosts are reached by ssh, which is not in PATH; install openssh-client");
  }
  // LogLevel: banners are not why something failed. ServerAlive: what has no agent at the other end would not notice
  // that it is gone.
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
  return {.name = "ssh", .command = command, .failure = explain};
}

}  // namespace trireme::cluster
