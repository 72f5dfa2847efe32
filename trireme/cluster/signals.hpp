// Makes requests to end (Ctrl-C, SIGTERM, closed terminal) readable from a descriptor during the object's lifetime.
// Used in the Supervisor's loop; processes started meanwhile get their usual signals.
#pragma once

#include <signal.h>

#include "trireme/base/unique_fd.hpp"

namespace trireme::cluster {

// SIGINT, SIGTERM and, unless ignored, SIGHUP: under nohup a job outlives its terminal.
sigset_t end_signals();

class EndRequests {
 public:
  EndRequests();
  ~EndRequests();
  EndRequests(const EndRequests&) = delete;
  EndRequests& operator=(const EndRequests&) = delete;

  int descriptor() const { return requests_.get(); }
  int next() const;  // the signal; 0: none

 private:
  UniqueFd requests_;
  sigset_t previous_mask_{};
  struct sigaction previous_pipe_ {};
};

}  // namespace trireme::cluster
