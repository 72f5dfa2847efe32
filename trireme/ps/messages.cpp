#include "trireme/ps/messages.hpp"

#include <algorithm>

namespace trireme::ps {
namespace {

constexpr std::size_t kUnderWay = 3;  // enough to have the next one ready when one completes

}  // namespace

MessageReceiver::State MessageReceiver::progress() {
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

void MessageReceiver::expect(std::span<std::byte> memory) {
  expected_ = std::ssize(memory);
  transfer_ = communicator_->start_receive(memory, from_, kElementsTag);
  state_ = Internal::elements_under_way;
}

bool MessageSender::is_later(const Message& a, const Message& b) {
  return a.priority != b.priority ? a.priority > b.priority : a.number > b.number;
}

void MessageSender::add(std::int64_t priority, const Header& header, std::span<const std::byte> elements,
                        std::shared_ptr<void> keep) {
  waiting_.push_back({priority, count_++, header, elements, std::move(keep), {}, {}});
  std::push_heap(waiting_.begin(), waiting_.end(), is_later);
}

bool MessageSender::progress() {
  bool moved = false;
  while (!under_way_.empty()) {
    Message& first = under_way_.front();
    if (!communicator_->done(first.header_transfer) || !communicator_->done(first.elements_transfer)) break;
    under_way_.pop_front();
    moved = true;
  }
  while (!waiting_.empty() && under_way_.size() < kUnderWay) {
    std::pop_heap(waiting_.begin(), waiting_.end(), is_later);
    Message next = std::move(waiting_.back());
    waiting_.pop_back();
    begin(std::move(next));
    moved = true;
  }
  return moved;
}

void MessageSender::begin(Message message) {
  // Counted at the start: a receiver that has everything and asks gets a count that includes it.
  if (message.header.kind != Kind::text) bytes_sent_ += std::ssize(message.elements);
  Message& sent = under_way_.emplace_back(std::move(message));
  sent.header_transfer = communicator_->start_send(std::as_bytes(std::span(&sent.header, 1)), to_, kHeaderTag);
  if (!sent.elements.empty()) {
    sent.elements_transfer = communicator_->start_send(sent.elements, to_, kElementsTag);
  }
}

}  // namespace trireme::ps
