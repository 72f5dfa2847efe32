#include "trireme/comm/grpc/attendance.hpp"

#include <fmt/format.h>

#include "trireme/comm/grpc/meeting.hpp"
#include "trireme/comm/grpc/messages.hpp"

namespace trireme::comm::rpc {

Attendance::Attendance(const Caller& caller, Roster& roster, grpc::CompletionQueue& queue)
    : caller_(caller), roster_(roster), call_(caller, kMeetingTask, kMeetingMethod, queue) {}

Attendance::~Attendance() {
  call_.cancel();
  std::unique_lock lock(mutex_);
  ended_.wait(lock, [&] { return under_way_ == 0; });
}

void Attendance::come() {
  {
    const std::lock_guard lock(mutex_);
    under_way_ = 1;
  }
  call_.open({.longest = std::chrono::duration_cast<std::chrono::milliseconds>(caller_.options.join_timeout),
              .waits_for_listener = true},
             [this](const OutgoingCall::Outcome& outcome) { on_opened(outcome); });
}

void Attendance::on_opened(const OutgoingCall::Outcome& outcome) {
  if (outcome.answer == OutgoingCall::Answer::welcome) {
    wire::Word word;
    *word.mutable_hello()->mutable_from() = to_message(caller_.self);
    for (const RpcTask& task : caller_.options.tasks) word.mutable_hello()->add_tasks(to_line(task));
    {
      const std::lock_guard lock(mutex_);
      is_open_ = is_writing_ = true;
      ++under_way_;
    }
    call_.stream().Write(to_buffer(word.SerializeAsString()), written_.tag());
    read();
  } else if (outcome.answer != OutgoingCall::Answer::unreachable) {
    fail(outcome.reason);
  }
  settle();
}

void Attendance::on_written(bool is_ok) {
  bool says_goodbye = false;
  {
    const std::lock_guard lock(mutex_);
    is_writing_ = false;
    says_goodbye = is_ok && is_leaving_;
  }
  if (says_goodbye) leave(std::chrono::milliseconds(0));
  settle();
}

void Attendance::read() {
  {
    const std::lock_guard lock(mutex_);
    ++under_way_;
  }
  call_.stream().Read(&message_, read_.tag());
}

void Attendance::on_read(bool is_ok) {
  if (is_ok) {
    take(to_text(message_));
    read();
    return settle();
  }
  {
    const std::lock_guard lock(mutex_);
    is_open_ = false;
  }
  call_.stream().Finish(&status_, finished_.tag());  // takes the place of the reading
}

void Attendance::take(const std::string& message) {
  wire::Notice notice;
  if (!notice.ParseFromString(message)) return fail("task 0 said something that is no notice");
  for (const wire::Identity& each : notice.here()) {
    const Identity identity = to_identity(each);
    if (identity.index == caller_.self.index) continue;
    const std::string refusal = roster_.admit(identity);
    if (!refusal.empty()) return fail(refusal);
    roster_.reached(identity.index);
  }
  for (const wire::Notice::Absence& absence : notice.absent()) {
    if (absence.task() < 0 || absence.task() >= std::ssize(caller_.options.tasks)) continue;
    if (absence.task() == caller_.self.index) continue;
    if (absence.is_lost()) {
      roster_.lose(absence.task(), absence.reason());
    } else {
      roster_.leave(absence.task());
    }
  }
}

void Attendance::on_finished() {
  if (status_.ok()) {
    roster_.leave(kMeetingTask);
  } else if (status_.error_code() == grpc::StatusCode::FAILED_PRECONDITION) {
    const RpcTask& host = caller_.options.tasks[kMeetingTask];
    fail(fmt::format("{} ({}) refuses {}: {}", host.name, host.address, caller_.self.name,
                     printable(status_.error_message())));
  } else {
    roster_.lose(kMeetingTask, describe_end(status_));
  }
  settle();
}

void Attendance::leave(std::chrono::milliseconds longest) {
  std::unique_lock lock(mutex_);
  is_leaving_ = true;
  if (is_open_ && !is_writing_) {
    is_open_ = false;
    is_writing_ = true;
    ++under_way_;
    wire::Word word;
    word.set_goodbye(true);
    call_.stream().Write(to_buffer(word.SerializeAsString()), written_.tag());
  }
  if (longest.count() > 0) ended_.wait_for(lock, longest, [&] { return under_way_ == 0; });
}

void Attendance::break_off() { call_.cancel(); }

void Attendance::fail(const std::string& reason) {
  const std::lock_guard lock(mutex_);
  if (failure_.empty()) failure_ = reason;
}

std::string Attendance::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

std::string Attendance::trouble() const { return call_.last_trouble(); }

void Attendance::settle() {
  const std::lock_guard lock(mutex_);
  if (--under_way_ == 0) ended_.notify_all();
}

}  // namespace trireme::comm::rpc
