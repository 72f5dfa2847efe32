// Runs a job: starts its tasks, shows their output, passes on Ctrl-C, and ends everything when one task fails, with the
// first error first; or goes on without it, where that is a worker and the job survives it. When the workers are done,
// so is the job: servers get a moment to leave. It knows what happens from the runners beside the tasks
// (task_runner.hpp), which connect to it; it parses nobody's output. Made by `trireme launch`; when it is done, no
// process and no file of the job is left.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "trireme/cluster/channel.hpp"
#include "trireme/cluster/cleanup.hpp"
#include "trireme/cluster/console.hpp"
#include "trireme/cluster/failure_log.hpp"
#include "trireme/cluster/job.hpp"
#include "trireme/cluster/signals.hpp"
#include "trireme/cluster/starter.hpp"
#include "trireme/cluster/starter_process.hpp"
#include "trireme/cluster/task_states.hpp"

namespace trireme::cluster {

inline constexpr int kInterruptedCode = 130;  // as a shell has it for a command that Ctrl-C ended

struct SupervisorOptions {
  std::string program;  // the `trireme` binary, for the guard
  ConsoleOptions console;
  std::chrono::milliseconds start_timeout{60'000};  // until all runners have connected
  std::chrono::milliseconds servers_leave{3'000};   // after the last worker, until servers are asked to end
  std::chrono::milliseconds grace{2'000};  // after a failure, from asking the other tasks to end to killing them
};

class Supervisor {
 public:
  Supervisor(Job job, const Starter& starter, const SupervisorOptions& options);

  int run();  // the job's exit code: 0, that of the first task that failed, or kInterruptedCode

 private:
  using Clock = std::chrono::steady_clock;

  enum class Phase {
    starting,  // runners connect
    running,
    leaving,   // the workers are done; the servers have not left yet
    settling,  // something failed; what else arrives now may be its cause
    ending,    // the tasks have been asked to end
    killing,   // the runners have been told to kill
    over,
  };

  void wait_for_events(std::chrono::milliseconds timeout);
  void accept_runners();
  void listen_to(Channel& newcomer);
  void listen_to(int task);
  void greet(Channel channel, const std::vector<nlohmann::json>& messages);
  void handle(int task, const nlohmann::json& message);
  void handle_ended(int task, const Ending& ending);
  void lose(int task, Cause cause, const std::string& reason);
  void listen_to(StarterProcess& starter);
  void handle_end_request(int signal);
  void ask_workers_to_end(int signal);

  void advance();  // from phase to phase, by what has happened and by the clock
  void start(bool after_hosts);
  void run_tasks();
  void begin_leaving();
  void begin_settling();
  void ping_hosts();
  void begin_ending();
  void ask_to_end();
  void begin_killing();
  void fail_job(Failure failure);
  void go_on();
  void finish();

  bool is_failing() const { return phase_ >= Phase::settling; }
  bool is_late() const { return Clock::now() >= deadline_; }
  std::string starter_text(const StarterProcess& starter, const Ending& ending) const;

  Job job_;
  const SupervisorOptions options_;
  Console console_;
  EndRequests end_requests_;
  Listener listener_;
  Guard guard_;  // before the starters: it ends everything when they are no longer needed
  TaskStates tasks_;
  std::vector<StartCommand> to_start_;
  std::vector<StarterProcess> starters_;
  std::vector<Channel> newcomers_;  // connected, but have not said who they are
  FailureLog failures_;
  Phase phase_ = Phase::starting;
  Clock::time_point deadline_;               // of the phase
  Clock::time_point answers_deadline_ = {};  // of settling, for hosts that do not answer
  bool started_ = false;                     // the tasks were told to run
  bool interrupted_ = false;                 // the workers were asked to end
  bool asked_here_ = false;                  // by a signal to this process
  bool killed_ = false;                      // the user did not want to wait
  bool abandoned_ = false;                   // not even for the rest of the output
};

}  // namespace trireme::cluster
