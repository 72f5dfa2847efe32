#include "trireme/ps/inbox.hpp"

namespace trireme::ps {

Inbox::State Inbox::progress() {
  if (state_ == Internal::idle) {
    transfer_ = communicator_->start_receive(std::as_writable_bytes(std::span(&header_, 1)), from_, kHeaderTag);
    state_ = Internal::header_under_way;
  }
  if (state_ == Internal::header_here) return State::header;
  if (!communicator_->done(transfer_)) return State::waiting;
  if (state_ == Internal::elements_under_way) {
    bytes_received_ += expected_;
    expected_ = 0;
    return State::elements;
  }
  state_ = Internal::header_here;
  return State::header;
}

void Inbox::expect(std::span<std::byte> memory) {
  expected_ = std::ssize(memory);
  transfer_ = communicator_->start_receive(memory, from_, kElementsTag);
  state_ = Internal::elements_under_way;
}

}  // namespace trireme::ps
