#include "trireme/comm/grpc/incoming_call.hpp"

namespace trireme::comm::rpc {

IncomingCall::IncomingCall(CallServer& server)
    : server_(server), sent_([this](bool) {
        is_sending_ = false;
        start_writes();
        end_operation();
      }) {
  server_.service.RequestCall(&context_, &call_, server_.queue, server_.queue, arrived_.tag());
}

IncomingCall::~IncomingCall() { server_.calls.erase(this); }

void IncomingCall::on_arrived(bool is_ok) {
  if (is_ok && !server_.is_closed) {
    await(server_);
    serve();
  }
  end_operation();
}

void IncomingCall::serve() {
  const std::string& method = context_.method();
  if (method == kChallengeMethod) return finish(server_.authenticator.challenge(context_));
  wire::Claim caller;
  grpc::Status status = server_.authenticator.admit(context_, method, caller);
  if (!status.ok()) return finish(status);
  handler_ = server_.make_handler(method, caller, *this, status);
  if (handler_ == nullptr) return finish(status);
  server_.calls.insert(this);
  is_sending_ = true;  // our proof
  ++under_way_;
  call_.SendInitialMetadata(sent_.tag());
  read();
}

void IncomingCall::write(const std::string& message) {
  unsent_.push_back(message);
  start_writes();
}

void IncomingCall::finish(const grpc::Status& status) {
  if (!final_status_) final_status_ = status;
  start_writes();
}

// One sending operation at a time, finally the status.
void IncomingCall::start_writes() {
  if (is_sending_ || is_finished_ || server_.is_closed) return;
  if (unsent_.empty() && !final_status_) return;
  is_sending_ = true;
  ++under_way_;
  if (unsent_.empty()) {
    is_finished_ = true;
    call_.Finish(*final_status_, sent_.tag());
    return;
  }
  call_.Write(to_buffer(unsent_.front()), sent_.tag());
  unsent_.pop_front();
}

void IncomingCall::read() {
  if (server_.is_closed) return;
  ++under_way_;
  call_.Read(&message_, read_.tag());
}

void IncomingCall::on_read(bool is_ok) {
  if (!is_ok) {
    if (!final_status_) handler_->on_end();
    unsent_.clear();
    finish(grpc::Status::OK);
  } else if (!final_status_) {
    grpc::ByteBuffer message;
    message.Swap(&message_);
    read();  // more may arrive while this is processed
    if (const auto status = handler_->on_message(message)) finish(*status);
  }
  end_operation();
}

void IncomingCall::end_operation() {
  if (--under_way_ == 0) delete this;
}

}  // namespace trireme::comm::rpc
