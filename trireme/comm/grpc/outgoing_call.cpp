#include "trireme/comm/grpc/outgoing_call.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "trireme/comm/grpc/control.pb.h"
#include "trireme/comm/grpc/proof.hpp"

namespace trireme::comm::rpc {
namespace {

using grpc::StatusCode;

constexpr std::chrono::milliseconds kLongestPause{2000};

std::string value_of(const std::multimap<grpc::string_ref, grpc::string_ref>& metadata, const char* key) {
  const auto found = metadata.find(key);
  return found == metadata.end() ? "" : std::string(found->second.data(), found->second.size());
}

bool is_passing(StatusCode code) {
  return code == StatusCode::UNAVAILABLE || code == StatusCode::ABORTED || code == StatusCode::DEADLINE_EXCEEDED ||
         code == StatusCode::CANCELLED;
}

bool says_nobody_listens(const std::string& message) { return message.find("Connection refused") != std::string::npos; }

// Tasks that were started together do not try again together.
std::chrono::milliseconds with_jitter(std::chrono::milliseconds pause) {
  thread_local std::minstd_rand random(std::random_device{}());
  return std::chrono::milliseconds(
      std::uniform_int_distribution<std::int64_t>(pause.count() / 2, pause.count())(random));
}

}  // namespace

std::string describe_end(const grpc::Status& status) {
  if (status.error_code() != StatusCode::UNAVAILABLE) return printable(status.error_message());
  if (status.error_message() == "Socket closed") return "connection closed";
  return fmt::format("connection closed ({})", printable(status.error_message()));
}

OutgoingCall::OutgoingCall(const Caller& caller, int task, const char* method, grpc::CompletionQueue& queue)
    : caller_(caller),
      task_(task),
      method_(method),
      queue_(queue),
      stub_(make_channel(caller.options.tasks[task].address, caller.tls, caller.options.liveness)),
      started_([this](bool is_ok) {
        if (is_ok) return stream().ReadInitialMetadata(answered_.tag());
        finish(failed_);
      }) {}

void OutgoingCall::open(Patience patience, std::function<void(const Outcome&)> then) {
  patience_ = patience;
  until_ = Clock::now() + patience.longest;
  then_ = std::move(then);
  ask();
}

void OutgoingCall::cancel() {
  const std::lock_guard lock(mutex_);
  is_cancelled_ = true;
  if (context_ != nullptr) context_->TryCancel();
  pause_.Cancel();
}

std::string OutgoingCall::last_trouble() const {
  const std::lock_guard lock(mutex_);
  return trouble_;
}

void OutgoingCall::renew_context() {
  call_.reset();
  const std::lock_guard lock(mutex_);
  context_ = std::make_unique<grpc::ClientContext>();
  if (is_cancelled_) context_->TryCancel();
  context_->AddMetadata(kClaimKey, claim_);
}

void OutgoingCall::ask() {
  wire::Claim claim;
  claim.set_method(method_);
  claim.set_from(caller_.self.index);
  claim.set_instance(caller_.self.instance);
  claim.set_to(task_);
  claim.set_address(caller_.options.tasks[task_].address);
  claim.set_nonce(random_bytes(kNonceBytes));
  claim_ = claim.SerializeAsString();
  renew_context();
  context_->set_deadline(after(time_left()));
  context_->set_wait_for_ready(patience_.waits_for_listener);
  call_ = stub_.PrepareCall(context_.get(), kChallengeMethod, &queue_);
  call_->StartCall(asked_.tag());
}

void OutgoingCall::finish(Event& event) { call_->Finish(&status_, event.tag()); }

void OutgoingCall::on_challenged() {
  if (!status_.ok()) return on_failed();
  challenge_ = value_of(context_->GetServerTrailingMetadata(), kChallengeKey);
  renew_context();
  context_->AddMetadata(kChallengeKey, challenge_);
  context_->AddMetadata(kProofKey, caller_proof(caller_.options.secret, claim_, challenge_));
  call_ = stub_.PrepareCall(context_.get(), method_, &queue_);
  call_->StartCall(started_.tag());
}

// Nothing is sent before this: a connection may have been replaced by one to somebody else.
void OutgoingCall::on_answered() {
  const std::string proof = value_of(context_->GetServerInitialMetadata(), kProofKey);
  if (proof.empty()) {
    const std::lock_guard lock(mutex_);
    trouble_ = "it does not prove that it knows the job's secret";
    return finish(failed_);
  }
  if (is_equal(proof, answer_proof(caller_.options.secret, claim_, challenge_))) return end(Answer::welcome, "");
  has_wrong_proof_ = true;
  context_->TryCancel();
  finish(failed_);
}

void OutgoingCall::on_failed() {
  const std::string words = printable(status_.error_message());
  const StatusCode code = has_wrong_proof_ ? StatusCode::UNKNOWN : status_.error_code();
  if (is_passing(code)) {
    const bool is_gone = !patience_.waits_for_listener && says_nobody_listens(words);
    const std::lock_guard lock(mutex_);
    trouble_ = "gRPC says: " + words;
    if (!is_cancelled_ && !is_gone && Clock::now() < until_) {
      pause_.Set(&queue_, after(with_jitter(next_pause_)), paused_.tag());
      next_pause_ = std::min(2 * next_pause_, kLongestPause);
      return;
    }
  }
  if (is_passing(code)) return end(Answer::unreachable, words);
  if (code == StatusCode::UNAUTHENTICATED) {
    return end(Answer::refused,
               fmt::format("{} refuses the secret of {}: all tasks of a job need the same", who(), caller_.self.name));
  }
  const RpcTask& task = caller_.options.tasks[task_];
  end(Answer::impostor,
      fmt::format("what listens at {} is not {} of this job: it cannot prove that it knows the job's secret. Another "
                  "program has taken the port, or it is a task of another job, or the lists of tasks differ",
                  task.address, task.name));
}

// Whoever hears of it may destroy this.
void OutgoingCall::end(Answer answer, const std::string& reason) {
  const auto then = std::move(then_);
  then({answer, reason});
}

std::chrono::milliseconds OutgoingCall::time_left() const {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until_ - Clock::now());
  return std::max(left, std::chrono::milliseconds(1));
}

std::string OutgoingCall::who() const {
  const RpcTask& task = caller_.options.tasks[task_];
  return fmt::format("{} ({})", task.name, task.address);
}

}  // namespace trireme::comm::rpc
