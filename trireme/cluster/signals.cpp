#include "trireme/cluster/signals.hpp"

#include <sys/signalfd.h>

namespace trireme::cluster {
namespace {

bool is_ignored(int signal) {
  struct sigaction action {};
  return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace

sigset_t end_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  if (!is_ignored(SIGHUP)) sigaddset(&signals, SIGHUP);
  return signals;
}

EndRequests::EndRequests() {
  const sigset_t signals = end_signals();
  pthread_sigmask(SIG_BLOCK, &signals, &previous_mask_);
  requests_.reset(signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC));
  // Writing reports a reader that has gone.
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &ignore, &previous_pipe_);
}

EndRequests::~EndRequests() {
  while (next() != 0) continue;  // drop signals meant for the job, which is over
  sigaction(SIGPIPE, &previous_pipe_, nullptr);
  pthread_sigmask(SIG_SETMASK, &previous_mask_, nullptr);
}

int EndRequests::next() const {
  signalfd_siginfo request{};
  return read(requests_.get(), &request, sizeof request) == sizeof request ? static_cast<int>(request.ssi_signo) : 0;
}

}  // namespace trireme::cluster
