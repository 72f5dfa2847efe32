#include "trireme/cluster/container.hpp"

#include <string_view>

#include "trireme/base/error.hpp"

namespace trireme::cluster {
namespace {

// By which those who have reached a host tell at which address; most containers would not let them in.
constexpr const char* kVariables =
    R"sh(env ${SSH_CONNECTION:+"SSH_CONNECTION=$SSH_CONNECTION"} )sh"
    R"sh(${SLURM_LAUNCH_NODE_IPADDR:+"SLURM_LAUNCH_NODE_IPADDR=$SLURM_LAUNCH_NODE_IPADDR"} )sh"
    R"sh(${SLURM_CPUS_ON_NODE:+"SLURM_CPUS_ON_NODE=$SLURM_CPUS_ON_NODE"})sh";

// One command with its words, as a shell reads it.
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
      bad_input("--exec '{}': '{}' at position {}: one command is needed; quote it where it belongs to a word", text,
                c == '\n' ? "\\n" : std::string(1, c), i + 1);
    }
    if (c == '\\' && ++i == text.size()) bad_input("--exec '{}': ends with a backslash", text);
    if (c == '\'' || c == '"') quote = c;
    at_word = c == ' ' || c == '\t';
    has_words = has_words || !at_word;
  }
  if (quote != 0) bad_input("--exec '{}': the quote {} has no end", text, quote);
  if (!has_words) bad_input("--exec: is empty; as in --exec 'apptainer exec image.sif'");
}

// Docker and Podman have an exit code for their own failures, Apptainer has ssh's.
std::string explain(const HostReach& reach, int code, const std::string& words) {
  constexpr int kContainerFailed = 125, kCannotBeRun = 126, kNoSuchProgram = 127;
  if (code == kContainerFailed || words.starts_with("FATAL:")) {
    return fmt::format("the container of --exec cannot be started: {}", words);
  }
  if (code == kCannotBeRun || code == kNoSuchProgram) {
    return fmt::format(
        "the command of --exec, or trireme in it, is not there or cannot be run ({}); --remote-program says where "
        "trireme is",
        words);
  }
  return reach.failure(code, words);
}

}  // namespace

HostReach inside(const HostReach& reach, const std::string& prefix) {
  check_is_one_command(prefix);
  const std::string script = fmt::format("exec {} {} \"$@\"", prefix, kVariables);
  const auto command = [reach, script](const std::string& host, const std::vector<std::string>& words) {
    std::vector<std::string> wrapped{"sh", "-c", script, "sh"};
    wrapped.insert(wrapped.end(), words.begin(), words.end());
    return reach.command(host, wrapped);
  };
  const auto failure = [reach](int code, const std::string& words) { return explain(reach, code, words); };
  return {.name = reach.name, .command = command, .failure = failure, .is_container = true};
}

}  // namespace trireme::cluster
