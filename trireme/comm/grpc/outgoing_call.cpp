#include "trireme/comm/grpc/outgoing_call.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "trireme/base/error.hpp"
#include "trireme/comm/grpc/proof.hpp"

namespace trireme::comm::rpc {
namespace {

using grpc::StatusCode;

constexpr std::chrono::milliseconds kLongestPause{2000};

std::string value_of(const std::multimap<grpc::string_ref, grpc::string_ref>& metadata, const char* key) {
  const auto found = metadata.find(key);
  return found == metadata.end() ? "" : std::string(found->second.data(), found->second.size());
}

bool is_transient(StatusCode code) {
  return code == StatusCode::UNAVAILABLE || code == StatusCode::ABORTED || code == StatusCode::DEADLINE_EXCEEDED ||
         code == StatusCode::CANCELLED;
}

bool says_nobody_listens(const std::string& message) { return message.find("Connection refused") != std::string::npos; }

// Tasks that started together should not retry together.
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

void OutgoingCall::open(OpenOptions options, std::function<void(const Outcome&)> then) {
  open_options_ = options;
  until_ = SteadyClock::now() + options.timeout;
  then_ = std::move(then);
  request_challenge();
}

void OutgoingCall::cancel() {
  const std::lock_guard lock(mutex_);
  is_cancelled_ = true;
  if (context_ != nullptr) context_->TryCancel();
  pause_.Cancel();
}

std::string OutgoingCall::last_error() const {
  const std::lock_guard lock(mutex_);
  return last_error_;
}

void OutgoingCall::renew_context() {
  call_.reset();
  const std::lock_guard lock(mutex_);
  context_ = std::make_unique<grpc::ClientContext>();
  if (is_cancelled_) context_->TryCancel();
  context_->AddMetadata(kClaimKey, claim_);
}

void OutgoingCall::request_challenge() {
  wire::Claim claim;
  claim.set_method(method_);
  claim.set_from(caller_.self.index());
  claim.set_instance(caller_.self.instance());
  claim.set_to(task_);
  claim.set_address(caller_.options.tasks[task_].address);
  claim.set_nonce(random_bytes(kNonceBytes));
  claim_ = claim.SerializeAsString();
  renew_context();
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until_ - SteadyClock::now());
  context_->set_deadline(after(std::max(left, std::chrono::milliseconds(1))));
  context_->set_wait_for_ready(open_options_.waits_for_listener);
  call_ = stub_.PrepareCall(context_.get(), kChallengeMethod, &queue_);
  call_->StartCall(asked_.tag());
}

void OutgoingCall::finish(Completion& completion) { call_->Finish(&status_, completion.tag()); }

void OutgoingCall::on_challenged() {
  if (!status_.ok()) return on_failed();
  challenge_ = value_of(context_->GetServerTrailingMetadata(), kChallengeKey);
  renew_context();
  context_->AddMetadata(kChallengeKey, challenge_);
  context_->AddMetadata(kProofKey, caller_proof(caller_.options.secret, claim_, challenge_));
  call_ = stub_.PrepareCall(context_.get(), method_, &queue_);
  call_->StartCall(started_.tag());
}

// Nothing is sent before this: the peer may have been replaced by another.
void OutgoingCall::on_answered() {
  const std::string proof = value_of(context_->GetServerInitialMetadata(), kProofKey);
  if (proof.empty()) {
    const std::lock_guard lock(mutex_);
    last_error_ = "it does not prove that it knows the job's secret";
    return finish(failed_);
  }
  if (is_equal(proof, answer_proof(caller_.options.secret, claim_, challenge_))) return end(Answer::accepted, "");
  has_wrong_proof_ = true;
  context_->TryCancel();
  finish(failed_);
}

void OutgoingCall::on_failed() {
  const std::string words = printable(status_.error_message());
  const StatusCode code = has_wrong_proof_ ? StatusCode::UNKNOWN : status_.error_code();
  if (is_transient(code)) {
    const bool is_gone = !open_options_.waits_for_listener && says_nobody_listens(words);
    const std::lock_guard lock(mutex_);
    last_error_ = "gRPC says: " + words;
    if (!is_cancelled_ && !is_gone && SteadyClock::now() < until_) {
      pause_.Set(&queue_, after(with_jitter(next_pause_)), paused_.tag());
      next_pause_ = std::min(2 * next_pause_, kLongestPause);
      return;
    }
  }
  if (is_transient(code)) return end(Answer::unreachable, words);
  const RpcTask& task = caller_.options.tasks[task_];
  if (code == StatusCode::UNAUTHENTICATED) {
    return end(Answer::refused, fmt::format("{} ({}) refuses the secret of {}: all tasks of a job need the same secret",
                                            task.name, task.address, caller_.self.name()));
  }
  end(Answer::refused,
      fmt::format(
          "the process listening at {} is not {} of this job: it cannot prove that it knows the job's secret. Another "
          "program may have taken the port, it may be a task of another job, or the lists of tasks may differ",
          task.address, task.name));
}

// The callback may destroy this object.
void OutgoingCall::end(Answer answer, const std::string& reason) {
  const auto then = std::move(then_);
  then({answer, reason});
}

}  // namespace trireme::comm::rpc
