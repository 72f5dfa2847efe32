// Requests to end (Ctrl-C, SIGTERM, the terminal going away) as something to be read, for as long as the object lives.
// Used by the Supervisor in its loop; processes that are started meanwhile get their usual signals.
#pragma once

#include <signal.h>

#include "trireme/base/unique_fd.hpp"

namespace trireme::cluster {

// SIGINT, SIGTERM and, unless it is ignored, SIGHUP: under nohup a job is to outlive its terminal.
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
