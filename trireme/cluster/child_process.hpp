// An owned child process: killed when the object is destroyed or the owning process ends, however that happens. Used by
// the Supervisor for starters and by run_task() for the task's program.
#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "trireme/base/unique_fd.hpp"

namespace trireme::cluster {

// What a shell exits with if it cannot start a program.
inline constexpr int kCannotBeRun = 126, kNoSuchProgram = 127;

struct ChildOptions {
  std::vector<std::string> command = {};
  std::map<std::string, std::string> environment = {};  // added to this process's own,
  std::vector<std::string> dropped_variables = {};      // minus those with these prefixes
  std::vector<int> processors = {};                     // empty: those of this process
  int in = -1, out = -1, err = -1;                      // -1: /dev/null
  std::vector<int> kept_descriptors = {};               // further ones to inherit, under the same numbers
  bool outlives = false;                                // does not die with this process
};

struct Ending {  // if `signal` is not 0, it ended the process
  int code = 0, signal = 0;
  bool is_success() const { return code == 0 && signal == 0; }
  int exit_code() const { return signal != 0 ? 128 + signal : code; }  // as in a shell
};
Ending ending_of(int wait_status);
std::string signal_text(int signal);            // "signal 9 (SIGKILL)"
std::string ending_text(const Ending& ending);  // "was killed by signal 9 (SIGKILL)", "ended with exit code 1"

class ChildProcess {
 public:
  // Starts it as leader of its own process group, so that Ctrl-C in a terminal does not reach it. Error(failed) with
  // the system's reason if it cannot start. The calling thread must outlive it.
  explicit ChildProcess(const ChildOptions& options);
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&&) = delete;
  ~ChildProcess();

  pid_t pid() const { return pid_; }
  int poll_descriptor() const { return handle_.get(); }  // readable once it has ended
  void signal_group(int signal) const;
  std::optional<Ending> try_wait();  // the ending, once there is one
  std::optional<int> next_change();  // the next unreported change (ended, stopped, continued) as a waitpid() status
  Ending wait();

 private:
  pid_t pid_ = -1;
  UniqueFd handle_;
  std::optional<Ending> ending_;
};

// The executable for this name, searched in PATH unless it contains '/'. Empty if not found.
std::string find_program(const std::string& name);

struct PipeEnds {
  UniqueFd read, write;
};
PipeEnds make_pipe();
// Reads what the nonblocking pipe has now. Closes it at its end or once the text exceeds `most` bytes.
void read_available(UniqueFd& pipe, std::string& text, std::size_t most = std::string::npos);

// A process with pipes to its input and from its outputs; our ends do not block.
struct PipedProcess {
  ChildProcess process;
  UniqueFd in, out, err;
};
PipedProcess start_piped(const std::vector<std::string>& command);

// Runs a program such as Slurm's with this input and returns its stdout; stderr is ours. Error(unavailable) if there is
// no such program, Error(failed) if it fails.
std::string command_output(const std::vector<std::string>& command, const std::string& input = "");

}  // namespace trireme::cluster
