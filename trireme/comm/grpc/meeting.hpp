// The meeting of a job's tasks, as task 0 holds it: every other task comes here and stays, in one call that lasts as
// long as both do, and hears who else has come and who is gone. So tasks need no connection to those whom they have
// nothing to send. Used by the server's thread alone, but for what is said otherwise.
#pragma once

#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "trireme/comm/grpc/gate.hpp"
#include "trireme/comm/grpc/incoming_call.hpp"
#include "trireme/comm/grpc/roster.hpp"

namespace trireme::comm::rpc {

inline constexpr int kMeetingTask = 0;

class Meeting {
 public:
  Meeting(const RpcOptions& options, const Identity& self, Roster& roster, Gate& gate);

  std::unique_ptr<Guest> receive(const wire::Claim& caller, IncomingCall& call);
  // All who are there hear who has come.
  void tell_arrivals();
  // ... and who is gone that they have not heard of.
  void tell_absences();

  // From any thread: why this job cannot meet; empty: nothing is known.
  std::string failure() const;

 private:
  class Attendant;

  // Why a task cannot be let in; empty: it is.
  std::string welcome(const wire::Claim& caller, const wire::Hello& hello);
  std::string arrivals() const;  // a notice
  std::string absences(const std::vector<int>& tasks) const;

  const std::vector<RpcTask> tasks_;
  const Identity self_;
  Roster& roster_;
  Gate& gate_;
  std::set<IncomingCall*> attendants_;
  std::vector<bool> is_absence_told_;  // by task
  mutable std::mutex mutex_;
  std::string failure_;
};

}  // namespace trireme::comm::rpc
