// Turns Ctrl-C, SIGTERM and SIGHUP into a stop request. The first signal asks the running command to finish its current
// work and report results; a second SIGINT or SIGTERM ends the process at once, as does the first if nobody listens.
// Create it before any thread, library threads included: a signal can reach any thread that does not block it.
#pragma once

#include <atomic>
#include <csignal>
#include <stop_token>
#include <string>
#include <thread>

namespace trireme::cli {

class Interrupt {
 public:
  // `answer` is printed on the first signal.
  explicit Interrupt(std::string answer = "interrupted: stopping after this step (interrupt again to stop at once)");
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  // From now on the caller watches the token.
  std::stop_token listen() {
    listening_ = true;
    return source_.get_token();
  }

 private:
  void wait_for_signals();

  std::string answer_;
  std::stop_source source_;
  std::atomic<bool> closing_ = false, listening_ = false;
  sigset_t signals_{};
  sigset_t previous_{};
  std::thread waiter_;  // last: uses all members above
};

inline constexpr int kInterruptedExitCode = 130;  // as shells report a command that Ctrl-C ended

}  // namespace trireme::cli
