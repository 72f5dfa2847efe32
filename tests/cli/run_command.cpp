#include "tests/cli/run_command.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <thread>
#include <utility>

namespace trireme::testkit {
namespace {

using Clock = std::chrono::steady_clock;

struct Pipe {
  int read_end = -1, write_end = -1;
  Pipe() {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error(std::string("pipe2: ") + std::strerror(errno));
    read_end = ends[0];
    write_end = ends[1];
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    close_write();
    if (read_end >= 0) close(read_end);
  }
  void close_write() {
    if (write_end >= 0) close(std::exchange(write_end, -1));
  }
};

// Between fork and exec only async-signal-safe calls are allowed: argv and the environment are made before.
[[noreturn]] void become(char* const* argv, char* const* environment, const Pipe& out, const Pipe& err) {
  setpgid(0, 0);  // its own group, so that a timeout can end everything it started
  const int nothing = open("/dev/null", O_RDONLY);
  dup2(nothing, STDIN_FILENO);
  dup2(out.write_end, STDOUT_FILENO);
  dup2(err.write_end, STDERR_FILENO);
  execve(argv[0], argv, environment);
  _exit(127);
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

std::vector<std::string> merged_environment(const std::vector<std::string>& extra) {
  std::vector<std::string> result = extra;  // first: getenv finds the first of two
  for (char** entry = environ; *entry != nullptr; ++entry) result.emplace_back(*entry);
  return result;
}

// False at the end of the stream.
bool drain(int descriptor, std::string& text) {
  std::array<char, 4096> chunk{};
  const ssize_t count = read(descriptor, chunk.data(), chunk.size());
  if (count > 0) text.append(chunk.data(), count);
  return count > 0 || (count < 0 && errno == EINTR);
}

}  // namespace

CommandResult run_command(const std::vector<std::string>& arguments, const CommandOptions& options) {
  std::vector<std::string> argument_texts = arguments;
  std::vector<std::string> environment_texts = merged_environment(options.environment);
  const std::vector<char*> argv = pointers(argument_texts);
  const std::vector<char*> environment = pointers(environment_texts);
  Pipe out, err;

  const pid_t child = fork();
  if (child < 0) throw std::runtime_error(std::string("fork: ") + std::strerror(errno));
  if (child == 0) become(argv.data(), environment.data(), out, err);
  setpgid(child, child);  // both sides set it: whoever comes first, it holds before any kill()
  out.close_write();
  err.close_write();

  CommandResult result;
  const auto start = Clock::now();
  bool signal_due = options.signal != 0, out_open = true, err_open = true;
  while (out_open || err_open) {
    const auto elapsed = Clock::now() - start;
    if (!result.timed_out && elapsed > options.timeout) {
      result.timed_out = true;
      kill(-child, SIGKILL);
    }
    if (signal_due && elapsed >= options.signal_delay &&
        result.out.find(options.signal_after_output) != std::string::npos) {
      signal_due = false;
      kill(child, options.signal);
    }
    std::array<pollfd, 2> polled{pollfd{out_open ? out.read_end : -1, POLLIN, 0},
                                 pollfd{err_open ? err.read_end : -1, POLLIN, 0}};
    if (poll(polled.data(), polled.size(), 20) < 0 && errno != EINTR) break;
    if (polled[0].revents != 0) out_open = drain(out.read_end, result.out);
    if (polled[1].revents != 0) err_open = drain(err.read_end, result.err);
  }

  // A program may close its output and live on.
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (Clock::now() - start > options.timeout) {
      result.timed_out = true;
      kill(-child, SIGKILL);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

CommandResult run_trireme(std::vector<std::string> arguments, const CommandOptions& options) {
  arguments.insert(arguments.begin(), TRIREME_BINARY);
  return run_command(arguments, options);
}

}  // namespace trireme::testkit
