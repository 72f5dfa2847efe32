// A task's place at the meeting that task 0 holds: comes as soon as that can be reached, hears who else is there and
// who is gone, and tells the roster. Made by the world of every other task.
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>

#include "trireme/comm/grpc/outgoing_call.hpp"
#include "trireme/comm/grpc/roster.hpp"

namespace trireme::comm::rpc {

class Attendance {
 public:
  // All live longer; the queue's thread does the work.
  Attendance(const Caller& caller, Roster& roster, grpc::CompletionQueue& queue);
  ~Attendance();

  void come();
  // Why this task cannot take part; empty: nothing is known.
  std::string failure() const;
  // Why task 0 cannot be reached.
  std::string trouble() const;

  // Returns when task 0 has heard our goodbye, or after this time.
  void leave(std::chrono::milliseconds longest);
  // Ends without a goodbye.
  void break_off();

 private:
  void on_opened(const OutgoingCall::Outcome& outcome);
  void on_written(bool is_ok);
  void read();
  void on_read(bool is_ok);
  void on_finished();
  void take(const std::string& message);
  void fail(const std::string& reason);
  void settle();

  const Caller& caller_;
  Roster& roster_;
  OutgoingCall call_;
  grpc::ByteBuffer message_;
  grpc::Status status_;
  Event written_{[this](bool is_ok) { on_written(is_ok); }};
  Event read_{[this](bool is_ok) { on_read(is_ok); }};
  Event finished_{[this](bool) { on_finished(); }};

  mutable std::mutex mutex_;
  std::condition_variable ended_;
  std::string failure_;
  bool is_open_ = false, is_writing_ = false, is_leaving_ = false;
  int under_way_ = 0;  // operations
};

}  // namespace trireme::comm::rpc
