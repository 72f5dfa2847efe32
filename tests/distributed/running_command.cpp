#include "tests/distributed/running_command.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <thread>

namespace trireme::testkit {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

std::vector<char*> pointers(Words& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

}  // namespace

RunningCommand::RunningCommand(const Words& arguments, const Words& environment) {
  temporary_ = folder_ / "tmp";
  fs::create_directory(temporary_);

  Words words{TRIREME_BINARY};
  words.insert(words.end(), arguments.begin(), arguments.end());
  Words variables{"TMPDIR=" + temporary_.string()};
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

RunningCommand::~RunningCommand() {
  if (has_ended()) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

std::string RunningCommand::out() const { return read_file(folder_ / "out"); }
std::string RunningCommand::err() const { return read_file(folder_ / "err"); }

bool RunningCommand::has_ended() {
  int status = 0;
  if (!reaped_ && waitpid(pid_, &status, WNOHANG) == pid_) {
    reaped_ = true;
    code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  return reaped_;
}

int RunningCommand::exit_code(std::chrono::milliseconds timeout) {
  if (!wait_until([this] { return has_ended(); }, timeout)) {
    ADD_FAILURE() << "the command did not end in time; it said:\n" << out() << err();
  }
  return code_;
}

bool RunningCommand::wait_for_output(const std::string& text, std::chrono::milliseconds timeout) const {
  return wait_until([&] { return has(out() + err(), text); }, timeout);
}

bool leaves_nothing(const RunningCommand& command) {
  // Everything that it has started has its folder for temporary files.
  const std::string mark = "TMPDIR=" + command.temporary_folder().string();
  const auto is_of_it = [&](const fs::directory_entry& process) {
    return has(read_file(process.path() / "environ"), mark);
  };
  const auto is_gone = [&] {
    std::error_code ignored;
    return std::none_of(fs::directory_iterator("/proc", ignored), fs::directory_iterator(), is_of_it);
  };
  return wait_until(is_gone, 10s);
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

bool wait_until(const std::function<bool()>& condition, std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(5ms);
  }
  return true;
}

}  // namespace trireme::testkit
