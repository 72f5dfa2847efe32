#include "trireme/comm/grpc/incoming_call.hpp"

#include "trireme/comm/grpc/security.hpp"

namespace trireme::comm::rpc {

IncomingCall::IncomingCall(Reception& reception)
    : reception_(reception), sent_([this](bool) {
        is_sending_ = false;
        pump();
        settle();
      }) {
  reception_.service.RequestCall(&context_, &call_, reception_.queue, reception_.queue, came_.tag());
}

IncomingCall::~IncomingCall() { reception_.calls.erase(this); }

void IncomingCall::on_came(bool is_ok) {
  if (is_ok && !reception_.gate.is_closed()) {
    await(reception_);
    serve();
  }
  settle();
}

void IncomingCall::serve() {
  const std::string& method = context_.method();
  if (method == kChallengeMethod) return finish(reception_.gate.challenge(context_));
  wire::Claim caller;
  grpc::Status status = reception_.gate.admit(context_, method, caller);
  if (!status.ok()) return finish(status);
  if (const auto answer = reception_.answer(method, status)) {
    write(*answer);
    return finish(status);
  }
  guest_ = reception_.receive(method, caller, *this, status);
  if (guest_ == nullptr) return finish(status);
  reception_.calls.insert(this);
  is_sending_ = true;  // our proof
  ++under_way_;
  call_.SendInitialMetadata(sent_.tag());
  read();
}

void IncomingCall::write(const std::string& message) {
  unsent_.push_back(message);
  pump();
}

void IncomingCall::finish(const grpc::Status& status) {
  if (!last_word_) last_word_ = status;
  pump();
}

// One operation that sends at a time, and the last word at the end.
void IncomingCall::pump() {
  if (is_sending_ || is_finished_ || reception_.gate.is_closed()) return;
  if (unsent_.empty() && !last_word_) return;
  is_sending_ = true;
  ++under_way_;
  if (unsent_.empty()) {
    is_finished_ = true;
    call_.Finish(*last_word_, sent_.tag());
    return;
  }
  call_.Write(to_buffer(unsent_.front()), sent_.tag());
  unsent_.pop_front();
}

void IncomingCall::read() {
  if (reception_.gate.is_closed()) return;
  ++under_way_;
  call_.Read(&message_, read_.tag());
}

void IncomingCall::on_read(bool is_ok) {
  if (!is_ok) {
    if (!last_word_) guest_->end();
    unsent_.clear();
    finish(grpc::Status::OK);
  } else if (!last_word_) {
    grpc::ByteBuffer message;
    message.Swap(&message_);
    read();  // more may come while this is taken
    if (const auto status = guest_->take(message)) finish(*status);
  }
  settle();
}

void IncomingCall::settle() {
  if (--under_way_ == 0) delete this;
}

}  // namespace trireme::comm::rpc
