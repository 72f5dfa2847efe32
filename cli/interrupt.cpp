#include "cli/interrupt.hpp"

#include <pthread.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

#include "trireme/cluster/environment.hpp"
#include "trireme/cluster/signals.hpp"

namespace trireme::cli {

// Blocks the signals in this thread and all it starts, so that only the waiter receives them, synchronously: there is
// no handler, and no system call is interrupted.
Interrupt::Interrupt(std::string answer) : answer_(std::move(answer)), signals_(cluster::end_signals()) {
  pthread_sigmask(SIG_BLOCK, &signals_, &previous_);
  waiter_ = std::thread([this] { wait_for_signals(); });
}

Interrupt::~Interrupt() {
  closing_ = true;
  pthread_kill(waiter_.native_handle(), SIGTERM);  // wakes the waiter; only this thread receives it
  waiter_.join();
  pthread_sigmask(SIG_SETMASK, &previous_, nullptr);
}

void Interrupt::wait_for_signals() {
  // A launcher reports it once for all its tasks.
  const bool is_silent = cluster::is_launched();
  const bool obeys_parent_alone = cluster::obeys_launcher_alone();
  for (;;) {
    siginfo_t request{};
    if (sigwaitinfo(&signals_, &request) < 0) continue;
    if (closing_) return;
    if (obeys_parent_alone && request.si_pid != getppid()) continue;
    const bool again = source_.stop_requested();
    if (again && request.si_signo == SIGHUP)
      continue;  // a closing terminal sends several SIGHUPs; that is not an impatient user
    if (!listening_ || again) _exit(kInterruptedExitCode);
    source_.request_stop();
    if (!is_silent) std::fputs(("\n" + answer_ + "\n").c_str(), stderr);
  }
}

}  // namespace trireme::cli
