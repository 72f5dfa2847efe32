#include "trireme/comm/grpc/membership.hpp"

#include <fmt/format.h>

namespace trireme::comm::rpc {
namespace {

using grpc::StatusCode;

std::string to_line(const RpcTask& task) { return fmt::format("{} {}", task.name, task.address); }

// The first difference between two task lists; empty if equal.
std::string difference(const std::vector<RpcTask>& ours,
                       const google::protobuf::RepeatedPtrField<std::string>& theirs) {
  if (ours.size() != static_cast<std::size_t>(theirs.size())) {
    return fmt::format("it has {} tasks here and {} there", ours.size(), theirs.size());
  }
  for (std::size_t i = 0; i < ours.size(); ++i) {
    const std::string mine = to_line(ours[i]);
    const std::string& other = theirs[static_cast<int>(i)];
    if (mine != other) return fmt::format("task {} is '{}' here and '{}' there", i, mine, other);
  }
  return "";
}

}  // namespace

class MembershipServer::MemberHandler : public CallHandler {
 public:
  MemberHandler(MembershipServer& membership, wire::Claim caller, IncomingCall& call)
      : membership_(membership), caller_(std::move(caller)), call_(call) {}
  ~MemberHandler() override { membership_.members_.erase(&call_); }

  std::optional<grpc::Status> on_message(const grpc::ByteBuffer& message) override {
    wire::MemberMessage received;
    if (!received.ParseFromString(to_text(message)))
      return grpc::Status(StatusCode::INVALID_ARGUMENT, "not a message from a task");
    if (received.has_join() && !has_joined_) {
      const std::string refusal = membership_.admit(caller_, received.join());
      if (!refusal.empty()) return grpc::Status(StatusCode::FAILED_PRECONDITION, refusal);
      has_joined_ = true;
      on_joined();
    } else if (received.leave() && has_joined_) {
      has_joined_ = false;
      membership_.roster_.leave(caller_.from());
      return grpc::Status::OK;
    }
    return std::nullopt;
  }

  void on_end() override {
    if (has_joined_) membership_.roster_.lose(caller_.from(), "connection closed");
  }

 private:
  void on_joined() {
    std::vector<int> absent;
    for (std::size_t task = 0; task < membership_.is_absence_announced_.size(); ++task) {
      if (membership_.is_absence_announced_[task]) absent.push_back(static_cast<int>(task));
    }
    if (!absent.empty()) call_.write(membership_.absences(absent));
    membership_.members_.insert(&call_);
    // The news that all have joined goes out at once; other news can wait a moment.
    if (membership_.roster_.all_joined()) {
      membership_.announce_arrivals();
    } else {
      call_.write(membership_.arrivals());
    }
  }

  MembershipServer& membership_;
  const wire::Claim caller_;
  IncomingCall& call_;
  bool has_joined_ = false;  // and has not left
};

MembershipServer::MembershipServer(const RpcOptions& options, const Identity& self, Roster& roster,
                                   Authenticator& authenticator)
    : tasks_(options.tasks),
      self_(self),
      roster_(roster),
      authenticator_(authenticator),
      is_absence_announced_(options.tasks.size()) {}

std::unique_ptr<CallHandler> MembershipServer::make_handler(const wire::Claim& caller, IncomingCall& call) {
  return std::make_unique<MemberHandler>(*this, caller, call);
}

std::string MembershipServer::admit(const wire::Claim& caller, const wire::Join& join) {
  const Identity& from = join.from();
  std::string refusal = difference(tasks_, join.tasks());
  if (!refusal.empty()) {
    refusal = fmt::format("{} has a different list of tasks than {}: {}", from.name(), self_.name(), refusal);
    const std::lock_guard lock(mutex_);
    failure_ = refusal;
  } else if (from.index() != caller.from() || from.instance() != caller.instance()) {
    refusal = fmt::format("{} called as task {}", from.name(), caller.from());
  } else {
    refusal = roster_.admit(from);
  }
  if (refusal.empty()) {
    roster_.mark_joined(from.index());
  } else {
    authenticator_.report("refused a task: " + printable(refusal));
  }
  return refusal;
}

void MembershipServer::announce_arrivals() {
  const std::string update = arrivals();
  for (IncomingCall* const call : members_) call->write(update);
}

void MembershipServer::announce_absences() {
  std::vector<int> gone;
  for (std::size_t task = 0; task < tasks_.size(); ++task) {
    if (is_absence_announced_[task] || roster_.presence(static_cast<int>(task)) == Presence::here) continue;
    is_absence_announced_[task] = true;
    gone.push_back(static_cast<int>(task));
  }
  if (gone.empty()) return;
  const std::string update = absences(gone);
  for (IncomingCall* const call : members_) call->write(update);
}

std::string MembershipServer::arrivals() const {
  wire::MembershipUpdate update;
  *update.add_here() = self_;
  for (const Identity& identity : roster_.identities()) *update.add_here() = identity;
  return update.SerializeAsString();
}

std::string MembershipServer::absences(const std::vector<int>& tasks) const {
  wire::MembershipUpdate update;
  for (const int task : tasks) {
    wire::MembershipUpdate::Absence& absence = *update.add_absent();
    absence.set_task(task);
    absence.set_is_lost(roster_.presence(task) == Presence::lost);
    absence.set_reason(roster_.reason_of(task));
  }
  return update.SerializeAsString();
}

std::string MembershipServer::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

MembershipClient::MembershipClient(const Caller& caller, Roster& roster, grpc::CompletionQueue& queue)
    : caller_(caller), roster_(roster), call_(caller, kMembershipTask, kMembershipMethod, queue) {}

MembershipClient::~MembershipClient() {
  call_.cancel();
  std::unique_lock lock(mutex_);
  ended_.wait(lock, [&] { return under_way_ == 0; });
}

void MembershipClient::join() {
  {
    const std::lock_guard lock(mutex_);
    under_way_ = 1;
  }
  call_.open({.timeout = std::chrono::duration_cast<std::chrono::milliseconds>(caller_.options.join_timeout),
              .waits_for_listener = true},
             [this](const OutgoingCall::Outcome& outcome) { on_opened(outcome); });
}

void MembershipClient::on_opened(const OutgoingCall::Outcome& outcome) {
  if (outcome.answer == OutgoingCall::Answer::accepted) {
    wire::MemberMessage message;
    *message.mutable_join()->mutable_from() = caller_.self;
    for (const RpcTask& task : caller_.options.tasks) message.mutable_join()->add_tasks(to_line(task));
    {
      const std::lock_guard lock(mutex_);
      is_open_ = is_writing_ = true;
      ++under_way_;
    }
    call_.stream().Write(to_buffer(message.SerializeAsString()), written_.tag());
    read();
  } else if (outcome.answer != OutgoingCall::Answer::unreachable) {
    fail(outcome.reason);
  }
  end_operation();
}

void MembershipClient::on_written(bool is_ok) {
  bool leaves = false;
  {
    const std::lock_guard lock(mutex_);
    is_writing_ = false;
    leaves = is_ok && is_leaving_;
  }
  if (leaves) leave(std::chrono::milliseconds(0));
  end_operation();
}

void MembershipClient::read() {
  {
    const std::lock_guard lock(mutex_);
    ++under_way_;
  }
  call_.stream().Read(&message_, read_.tag());
}

void MembershipClient::on_read(bool is_ok) {
  if (is_ok) {
    on_update(to_text(message_));
    read();
    return end_operation();
  }
  {
    const std::lock_guard lock(mutex_);
    is_open_ = false;
  }
  call_.stream().Finish(&status_, finished_.tag());  // takes the place of the read
}

void MembershipClient::on_update(const std::string& message) {
  wire::MembershipUpdate update;
  if (!update.ParseFromString(message)) return fail("task 0 sent something that is not an update");
  for (const Identity& identity : update.here()) {
    if (identity.index() == caller_.self.index()) continue;
    const std::string refusal = roster_.admit(identity);
    if (!refusal.empty()) return fail(refusal);
    roster_.mark_joined(identity.index());
  }
  for (const wire::MembershipUpdate::Absence& absence : update.absent()) {
    if (absence.task() < 0 || absence.task() >= std::ssize(caller_.options.tasks)) continue;
    if (absence.task() == caller_.self.index()) continue;
    if (absence.is_lost()) {
      roster_.lose(absence.task(), absence.reason());
    } else {
      roster_.leave(absence.task());
    }
  }
}

void MembershipClient::on_finished() {
  if (status_.ok()) {
    roster_.leave(kMembershipTask);
  } else if (status_.error_code() == grpc::StatusCode::FAILED_PRECONDITION) {
    const RpcTask& host = caller_.options.tasks[kMembershipTask];
    fail(fmt::format("{} ({}) refuses {}: {}", host.name, host.address, caller_.self.name(),
                     printable(status_.error_message())));
  } else {
    roster_.lose(kMembershipTask, describe_end(status_));
  }
  end_operation();
}

void MembershipClient::leave(std::chrono::milliseconds longest) {
  std::unique_lock lock(mutex_);
  is_leaving_ = true;
  if (is_open_ && !is_writing_) {
    is_open_ = false;
    is_writing_ = true;
    ++under_way_;
    wire::MemberMessage message;
    message.set_leave(true);
    call_.stream().Write(to_buffer(message.SerializeAsString()), written_.tag());
  }
  if (longest.count() > 0) ended_.wait_for(lock, longest, [&] { return under_way_ == 0; });
}

void MembershipClient::break_off() { call_.cancel(); }

void MembershipClient::fail(const std::string& reason) {
  const std::lock_guard lock(mutex_);
  if (failure_.empty()) failure_ = reason;
}

std::string MembershipClient::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

std::string MembershipClient::last_error() const { return call_.last_error(); }

void MembershipClient::end_operation() {
  const std::lock_guard lock(mutex_);
  if (--under_way_ == 0) ended_.notify_all();
}

}  // namespace trireme::comm::rpc
