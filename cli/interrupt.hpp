// Ctrl-C (and SIGTERM, and the terminal going away) as a request to stop: the first one asks the running command to end
// after what it is doing, with its results; the second, by SIGINT or SIGTERM, ends the process at once. So does the
// first while there is nothing yet to end well. Held by a command while it runs; made before anything starts threads,
// those of libraries included: a signal goes to any thread that does not block it.
#pragma once

#include <atomic>
#include <csignal>
#include <stop_token>
#include <string>
#include <thread>

namespace trireme::cli {

class Interrupt {
 public:
  // What the first one is answered with.
  explicit Interrupt(std::string answer = "interrupted: ending after this step (once more to end at once)");
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  // From now on somebody looks at the token.
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
  std::thread waiter_;  // last: uses all of the above
};

// What a shell gives for a command that Ctrl-C ended.
inline constexpr int kInterruptedExitCode = 130;

}  // namespace trireme::cli
