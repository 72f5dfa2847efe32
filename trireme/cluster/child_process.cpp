#include "trireme/cluster/child_process.hpp"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <utility>

#include "trireme/base/error.hpp"

namespace trireme::cluster {
namespace {

std::vector<std::string> merged_environment(const ChildOptions& options) {
  const auto is_dropped = [&](const std::string& name) {
    return options.environment.contains(name) ||
           std::ranges::any_of(options.dropped_variables,
                               [&](const std::string& beginning) { return name.starts_with(beginning); });
  };
  std::vector<std::string> merged;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (!is_dropped(text.substr(0, text.find('=')))) merged.push_back(text);
  }
  for (const auto& [name, value] : options.environment) merged.push_back(fmt::format("{}={}", name, value));
  return merged;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

// A set for sched_setaffinity(), large enough for the highest processor.
std::vector<unsigned long> processor_set(const std::vector<int>& processors) {
  constexpr int kBits = 8 * sizeof(unsigned long);
  std::vector<unsigned long> set;
  for (const int processor : processors) {
    const std::size_t word = processor / kBits;
    if (set.size() <= word) set.resize(word + 1);
    set[word] |= 1UL << (processor % kBits);
  }
  return set;
}

// Prepared before fork: until exec only async-signal-safe calls are allowed.
struct Preparation {
  const char* program;
  char* const* argv;
  char* const* environment;
  const std::vector<unsigned long>& processors;
  const ChildOptions& options;
  pid_t parent;
  int failure;  // where to write errno on failure
};

bool connect_streams(const ChildOptions& options) {
  const int nothing = open("/dev/null", O_RDWR);
  const auto chosen = [nothing](int descriptor) { return descriptor >= 0 ? descriptor : nothing; };
  if (dup2(chosen(options.in), STDIN_FILENO) < 0 || dup2(chosen(options.out), STDOUT_FILENO) < 0 ||
      dup2(chosen(options.err), STDERR_FILENO) < 0) {
    return false;
  }
  if (nothing > STDERR_FILENO) close(nothing);
  for (const int descriptor : options.kept_descriptors) {
    if (fcntl(descriptor, F_SETFD, 0) != 0) return false;
  }
  return true;
}

void reset_signals() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGCHLD}) ::signal(signal, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

[[noreturn]] void become(const Preparation& preparation) {
  const std::vector<unsigned long>& processors = preparation.processors;
  bool prepared = setpgid(0, 0) == 0;
  if (!preparation.options.outlives) {
    prepared = prepared && prctl(PR_SET_PDEATHSIG, SIGKILL) == 0;
    if (getppid() != preparation.parent) _exit(kNoSuchProgram);  // it died before the request above took effect
  }
  prepared = prepared && connect_streams(preparation.options);
  if (!processors.empty()) {
    prepared = prepared && sched_setaffinity(0, processors.size() * sizeof(unsigned long),
                                             reinterpret_cast<const cpu_set_t*>(processors.data())) == 0;
  }
  reset_signals();
  if (prepared) execve(preparation.program, preparation.argv, preparation.environment);
  const int reason = errno;
  [[maybe_unused]] const ssize_t written = write(preparation.failure, &reason, sizeof reason);
  _exit(kNoSuchProgram);
}

bool can_be_run(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) && access(path.c_str(), X_OK) == 0;
}

// A file needs no concurrent writer, unlike a pipe.
UniqueFd text_file(const std::string& text) {
  UniqueFd file(memfd_create("input", MFD_CLOEXEC));
  if (write(file.get(), text.data(), text.size()) != std::ssize(text) || lseek(file.get(), 0, SEEK_SET) != 0) {
    fail(ErrorKind::failed, "cannot make a file in memory: {}", std::strerror(errno));
  }
  return file;
}

}  // namespace

Ending ending_of(int wait_status) {
  if (WIFSIGNALED(wait_status)) return {.code = 0, .signal = WTERMSIG(wait_status)};
  return {.code = WEXITSTATUS(wait_status), .signal = 0};
}

std::string signal_text(int signal) {
  const char* name = sigabbrev_np(signal);
  return name != nullptr ? fmt::format("signal {} (SIG{})", signal, name) : fmt::format("signal {}", signal);
}

std::string ending_text(const Ending& ending) {
  if (ending.signal != 0) return fmt::format("was killed by {}", signal_text(ending.signal));
  return fmt::format("ended with exit code {}", ending.code);
}

ChildProcess::ChildProcess(const ChildOptions& options) {
  std::vector<std::string> arguments = options.command;
  const std::string program = find_program(arguments.at(0));
  if (program.empty()) fail(ErrorKind::failed, "cannot start '{}': no such program", arguments[0]);
  std::vector<std::string> environment = merged_environment(options);
  const std::vector<char*> argv = pointers(arguments), environment_pointers = pointers(environment);
  const std::vector<unsigned long> processors = processor_set(options.processors);
  PipeEnds failure = make_pipe();
  const Preparation preparation{program.c_str(), argv.data(), environment_pointers.data(), processors,
                                options,         getpid(),    failure.write.get()};
  pid_ = fork();
  if (pid_ == 0) become(preparation);
  if (pid_ < 0) fail(ErrorKind::failed, "cannot start '{}': {}", program, std::strerror(errno));
  failure.write.reset();
  int reason = 0;  // stays 0 if exec succeeds, which closes the pipe
  if (read(failure.read.get(), &reason, sizeof reason) == static_cast<ssize_t>(sizeof reason)) {
    waitpid(pid_, nullptr, 0);
    fail(ErrorKind::failed, "cannot start '{}': {}", program, std::strerror(reason));
  }
  handle_.reset(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), handle_(std::move(other.handle_)), ending_(other.ending_) {}

ChildProcess::~ChildProcess() {
  if (pid_ < 0 || ending_) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

void ChildProcess::signal_group(int signal) const { kill(-pid_, signal); }

std::optional<Ending> ChildProcess::try_wait() {
  int status = 0;
  if (!ending_ && waitpid(pid_, &status, WNOHANG) == pid_) ending_ = ending_of(status);
  return ending_;
}

std::optional<int> ChildProcess::next_change() {
  int status = 0;
  if (ending_ || waitpid(pid_, &status, WNOHANG | WUNTRACED | WCONTINUED) != pid_) return std::nullopt;
  if (WIFEXITED(status) || WIFSIGNALED(status)) ending_ = ending_of(status);
  return status;
}

Ending ChildProcess::wait() {
  int status = 0;
  if (!ending_ && waitpid(pid_, &status, 0) == pid_) ending_ = ending_of(status);
  return ending_.value_or(Ending{});
}

std::string find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) return can_be_run(name) ? name : "";
  const char* path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "/usr/local/bin:/usr/bin:/bin");
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string candidate = fmt::format("{}/{}", folder.empty() ? "." : folder, name);
    if (can_be_run(candidate)) return candidate;
  }
  return "";
}

PipeEnds make_pipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) fail(ErrorKind::failed, "cannot make a pipe: {}", std::strerror(errno));
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

void read_available(UniqueFd& pipe, std::string& text, std::size_t most) {
  std::array<char, 4096> chunk{};
  while (pipe.is_open()) {
    const ssize_t count = read(pipe.get(), chunk.data(), chunk.size());
    if (count == 0 || text.size() > most) pipe.reset();
    if (count <= 0) return;
    text.append(chunk.data(), count);
  }
}

PipedProcess start_piped(const std::vector<std::string>& command) {
  PipeEnds in = make_pipe(), out = make_pipe(), err = make_pipe();
  for (const UniqueFd* ours : {&in.write, &out.read, &err.read}) fcntl(ours->get(), F_SETFL, O_NONBLOCK);
  return {.process =
              ChildProcess({.command = command, .in = in.read.get(), .out = out.write.get(), .err = err.write.get()}),
          .in = std::move(in.write),
          .out = std::move(out.read),
          .err = std::move(err.read)};
}

std::string command_output(const std::vector<std::string>& command, const std::string& input) {
  if (find_program(command.front()).empty()) fail(ErrorKind::unavailable, "{} is not in PATH", command.front());
  const UniqueFd text = text_file(input);
  PipeEnds out = make_pipe();
  ChildProcess process({.command = command, .in = text.get(), .out = out.write.get(), .err = STDERR_FILENO});
  out.write.reset();
  std::string output;
  read_available(out.read, output);
  if (const Ending ending = process.wait(); !ending.is_success()) {
    fail(ErrorKind::failed, "{} {}", command.front(), ending_text(ending));
  }
  return output;
}

}  // namespace trireme::cluster
