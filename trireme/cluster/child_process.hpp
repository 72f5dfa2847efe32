// A process that this one has started and owns. Used by the Supervisor for what starts tasks, and by run_task() for the
// task's program. It dies with its owner: when the object goes, and when the owning process does, however that ends.
#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "trireme/base/unique_fd.hpp"

namespace trireme::cluster {

struct ChildOptions {
  std::vector<std::string> command = {};
  std::map<std::string, std::string> environment = {};  // beside this process's own,
  std::vector<std::string> dropped_variables = {};      // less those whose names begin so
  std::vector<int> processors = {};                     // empty: those of this process
  int in = -1, out = -1, err = -1;                      // -1: /dev/null
  std::vector<int> kept_descriptors = {};               // further ones that it inherits, under the same number
  bool outlives = false;                                // does not die with this process
};

// How a process ended: by itself with a code, or by a signal (then `signal` is not 0).
struct Ending {
  int code = 0, signal = 0;
  bool is_success() const { return code == 0 && signal == 0; }
  int exit_code() const { return signal != 0 ? 128 + signal : code; }  // as a shell has it
};
Ending ending_of(int wait_status);
std::string signal_text(int signal);            // "signal 9 (SIGKILL)"
std::string ending_text(const Ending& ending);  // "was killed by signal 9 (SIGKILL)", "ended with exit code 1"

class ChildProcess {
 public:
  // Starts it as leader of a process group of its own, so that a terminal's Ctrl-C does not reach it. Error(failed)
  // with the system's reason where that is impossible. The calling thread has to outlive it.
  explicit ChildProcess(const ChildOptions& options);
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&&) = delete;
  ~ChildProcess();

  pid_t pid() const { return pid_; }
  int poll_descriptor() const { return handle_.get(); }  // readable once it has ended
  void signal_group(int signal) const;
  std::optional<Ending> try_wait();  // the ending, once there is one
  // The next change that nobody has asked for yet: ended, stopped or continued, as a status of waitpid().
  std::optional<int> next_change();
  Ending wait();

 private:
  pid_t pid_ = -1;
  UniqueFd handle_;
  std::optional<Ending> ending_;
};

// The file that this name stands for, looked up in PATH unless it has a '/'. Empty: there is none that can be run.
std::string find_program(const std::string& name);

struct PipeEnds {
  UniqueFd read, write;
};
PipeEnds make_pipe();
// What the pipe, which does not block, has now. It is closed at its end, and once the text has more than so many bytes.
void read_available(UniqueFd& pipe, std::string& text, std::size_t most = std::string::npos);

// A process with pipes to its input and from its outputs; our ends do not block.
struct PipedProcess {
  ChildProcess process;
  UniqueFd in, out, err;
};
PipedProcess start_piped(const std::vector<std::string>& command);

// What a command of another program, as those of Slurm, says on its standard output; the input is what it reads. What
// it complains about goes to ours. Error(unavailable) if there is no such program, Error(failed) if it fails.
std::string command_output(const std::vector<std::string>& command, const std::string& input = "");

}  // namespace trireme::cluster
