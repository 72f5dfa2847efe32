#include "tests/distributed/launched_job.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <random>
#include <thread>

namespace trireme::testkit {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Of NUL-separated "NAME=value" entries; empty: not there.
std::string value_of(const std::string& environment, const std::string& name) {
  const std::string wanted = name + "=";
  for (std::size_t begin = 0; begin < environment.size();) {
    const std::size_t end = std::min(environment.find('\0', begin), environment.size());
    const std::string entry = environment.substr(begin, end - begin);
    if (entry.rfind(wanted, 0) == 0) return entry.substr(wanted.size());
    begin = end + 1;
  }
  return "";
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

bool wait_until(const std::function<bool()>& condition, std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(5ms);
  }
  return true;
}

}  // namespace

LaunchedJob::LaunchedJob(const std::vector<std::string>& arguments, const std::vector<std::string>& environment)
    : mark_(std::to_string(std::random_device{}())) {
  temporary_ = folder_ / "tmp";
  fs::create_directory(temporary_);

  std::vector<std::string> words{TRIREME_BINARY, "launch"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<std::string> variables{"LAUNCH_TEST=" + mark_, "TMPDIR=" + temporary_.string()};
  variables.insert(variables.end(), environment.begin(), environment.end());
  for (char** entry = environ; *entry != nullptr; ++entry) variables.emplace_back(*entry);
  const std::vector<char*> argv = pointers(words), environment_pointers = pointers(variables);
  const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  const int out = open((folder_ / "out").c_str(), O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
  const int err = open((folder_ / "err").c_str(), O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
  pid_ = fork();
  if (pid_ == 0) {
    setpgid(0, 0);
    dup2(nothing, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
    execve(argv[0], argv.data(), environment_pointers.data());
    _exit(127);
  }
  setpgid(pid_, pid_);
  for (const int descriptor : {nothing, out, err}) close(descriptor);
}

LaunchedJob::~LaunchedJob() {
  for (const JobProcess& process : processes()) kill(process.pid, SIGKILL);
  if (!reaped_) waitpid(pid_, nullptr, 0);
  if (!segments_.empty()) fs::remove_all(segments_);
}

std::string LaunchedJob::out() const { return read_file(folder_ / "out"); }
std::string LaunchedJob::err() const { return read_file(folder_ / "err"); }

bool LaunchedJob::has_ended() {
  int status = 0;
  if (!reaped_ && waitpid(pid_, &status, WNOHANG) == pid_) {
    reaped_ = true;
    code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  return reaped_;
}

int LaunchedJob::exit_code(std::chrono::milliseconds timeout) {
  if (!wait_until([this] { return has_ended(); }, timeout)) {
    ADD_FAILURE() << "the launcher did not end in time; it said:\n" << out() << err();
  }
  return code_;
}

bool LaunchedJob::wait_for_output(const std::string& text, std::chrono::milliseconds timeout) const {
  return wait_until([&] { return (out() + err()).find(text) != std::string::npos; }, timeout);
}

std::vector<JobProcess> LaunchedJob::processes() const {
  std::vector<JobProcess> found;
  std::error_code ignored;
  for (fs::directory_iterator it("/proc", ignored), end; it != end; it.increment(ignored)) {
    const std::string name = it->path().filename();
    JobProcess process;
    if (std::from_chars(name.data(), name.data() + name.size(), process.pid).ec != std::errc()) continue;
    const std::string environment = read_file(it->path() / "environ");
    if (value_of(environment, "LAUNCH_TEST") != mark_) continue;
    process.command = read_file(it->path() / "cmdline");
    std::replace(process.command.begin(), process.command.end(), '\0', ' ');
    const std::string rank = value_of(environment, "TRIREME_TASK_INDEX");
    if (!rank.empty()) process.rank = std::stoi(rank);
    process.role = value_of(environment, "TRIREME_TASK_ROLE");
    found.push_back(process);
  }
  for (const JobProcess& process : found) {
    const std::size_t at = process.command.find("/trireme-");
    if (process.command.find(" launch-guard ") == std::string::npos || at == std::string::npos) continue;
    const std::size_t begin = process.command.rfind(' ', at) + 1;
    segments_ = process.command.substr(begin, process.command.find(' ', at) - begin);
  }
  return found;
}

std::vector<JobProcess> LaunchedJob::programs(std::size_t count) const {
  std::vector<JobProcess> programs;
  wait_until(
      [&] {
        programs.clear();
        for (const JobProcess& process : processes()) {
          const bool is_first = std::none_of(programs.begin(), programs.end(), [&](const JobProcess& other) {
            return other.rank == process.rank &&
                   other.role == process.role;  // the program comes before what it has started
          });
          if (process.rank >= 0 && is_first) programs.push_back(process);
        }
        return programs.size() >= count;
      },
      30s);
  std::sort(programs.begin(), programs.end(), [](const auto& a, const auto& b) {
    return std::pair(a.role == "ps", a.rank) < std::pair(b.role == "ps", b.rank);
  });
  return programs;
}

bool LaunchedJob::is_gone_within(std::chrono::milliseconds timeout) const {
  const auto is_gone = [this] {
    const auto left = processes();
    return left.empty() && (segments_.empty() || !fs::exists(segments_)) && fs::is_empty(temporary_);
  };
  if (wait_until(is_gone, timeout)) return true;
  for (const JobProcess& process : processes())
    ADD_FAILURE() << "still there: " << process.pid << " " << process.command;
  if (!segments_.empty() && fs::exists(segments_)) ADD_FAILURE() << "still there: " << segments_;
  for (const auto& entry : fs::directory_iterator(temporary_)) ADD_FAILURE() << "still there: " << entry.path();
  return false;
}

}  // namespace trireme::testkit
