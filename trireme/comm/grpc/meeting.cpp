#include "trireme/comm/grpc/meeting.hpp"

#include <fmt/format.h>

#include "trireme/comm/grpc/messages.hpp"
#include "trireme/comm/grpc/security.hpp"

namespace trireme::comm::rpc {
namespace {

using grpc::StatusCode;

// The first difference between two lists of tasks; empty: there is none.
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

class Meeting::Attendant : public Guest {
 public:
  Attendant(Meeting& meeting, wire::Claim caller, IncomingCall& call)
      : meeting_(meeting), caller_(std::move(caller)), call_(call) {}
  ~Attendant() override { meeting_.attendants_.erase(&call_); }

  std::optional<grpc::Status> take(const grpc::ByteBuffer& message) override {
    wire::Word word;
    if (!word.ParseFromString(to_text(message))) return grpc::Status(StatusCode::INVALID_ARGUMENT, "no word of a task");
    if (word.has_hello() && !has_come_) {
      const std::string refusal = meeting_.welcome(caller_, word.hello());
      if (!refusal.empty()) return grpc::Status(StatusCode::FAILED_PRECONDITION, refusal);
      has_come_ = true;
      come();
    } else if (word.goodbye() && has_come_) {
      has_come_ = false;
      meeting_.roster_.leave(caller_.from());
      return grpc::Status::OK;
    }
    return std::nullopt;
  }

  void end() override {
    if (has_come_) meeting_.roster_.lose(caller_.from(), "connection closed");
  }

 private:
  void come() {
    std::vector<int> absent;
    for (std::size_t task = 0; task < meeting_.is_absence_told_.size(); ++task) {
      if (meeting_.is_absence_told_[task]) absent.push_back(static_cast<int>(task));
    }
    if (!absent.empty()) call_.write(meeting_.absences(absent));
    meeting_.attendants_.insert(&call_);
    // That all are there is for all of them; before that the others can wait a moment for the news.
    if (meeting_.roster_.has_reached_all()) {
      meeting_.tell_arrivals();
    } else {
      call_.write(meeting_.arrivals());
    }
  }

  Meeting& meeting_;
  const wire::Claim caller_;
  IncomingCall& call_;
  bool has_come_ = false;  // and has not left
};

Meeting::Meeting(const RpcOptions& options, const Identity& self, Roster& roster, Gate& gate)
    : tasks_(options.tasks), self_(self), roster_(roster), gate_(gate), is_absence_told_(options.tasks.size()) {}

std::unique_ptr<Guest> Meeting::receive(const wire::Claim& caller, IncomingCall& call) {
  return std::make_unique<Attendant>(*this, caller, call);
}

std::string Meeting::welcome(const wire::Claim& caller, const wire::Hello& hello) {
  const Identity from = to_identity(hello.from());
  std::string refusal = difference(tasks_, hello.tasks());
  if (!refusal.empty()) {
    refusal = fmt::format("{} has another list of tasks than {}: {}", from.name, self_.name, refusal);
    const std::lock_guard lock(mutex_);
    failure_ = refusal;
  } else if (from.index != caller.from() || from.instance != caller.instance()) {
    refusal = fmt::format("{} called as task {}", from.name, caller.from());
  } else {
    refusal = roster_.admit(from);
  }
  if (refusal.empty()) {
    roster_.reached(from.index);
  } else {
    gate_.report("refused a task: " + printable(refusal));
  }
  return refusal;
}

void Meeting::tell_arrivals() {
  const std::string notice = arrivals();
  for (IncomingCall* const call : attendants_) call->write(notice);
}

void Meeting::tell_absences() {
  std::vector<int> gone;
  for (std::size_t task = 0; task < tasks_.size(); ++task) {
    if (is_absence_told_[task] || roster_.presence(static_cast<int>(task)) == Presence::here) continue;
    is_absence_told_[task] = true;
    gone.push_back(static_cast<int>(task));
  }
  if (gone.empty()) return;
  const std::string notice = absences(gone);
  for (IncomingCall* const call : attendants_) call->write(notice);
}

std::string Meeting::arrivals() const {
  wire::Notice notice;
  *notice.add_here() = to_message(self_);
  for (const Identity& identity : roster_.identities()) *notice.add_here() = to_message(identity);
  return notice.SerializeAsString();
}

std::string Meeting::absences(const std::vector<int>& tasks) const {
  wire::Notice notice;
  for (const int task : tasks) {
    wire::Notice::Absence& absence = *notice.add_absent();
    absence.set_task(task);
    absence.set_is_lost(roster_.presence(task) == Presence::lost);
    absence.set_reason(roster_.reason_of(task));
  }
  return notice.SerializeAsString();
}

std::string Meeting::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

}  // namespace trireme::comm::rpc
