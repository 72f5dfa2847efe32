#include "trireme/comm/grpc/inbox.hpp"

#include <algorithm>
#include <thread>

namespace trireme::comm::rpc {
namespace {

// No sender is this far ahead of its receiver; such a frame is forged.
constexpr std::uint64_t kFurthestAhead = std::uint64_t{1} << 24;

}  // namespace

std::shared_ptr<PendingReceive> Inbox::post(int from, int tag, std::span<std::byte> data) {
  auto receive = std::make_shared<PendingReceive>();
  std::unique_lock lock(mutex_);
  if (is_closed_) return receive;  // never completes
  Channel& channel = channels_[{from, tag}];
  receive->from = from;
  receive->tag = tag;
  receive->sequence = channel.posted++;
  receive->data = data;
  Message& message = channel.open[receive->sequence];
  message.receive = receive;
  if (!message.is_known) return receive;
  const std::vector<Part> kept = std::move(message.kept);
  if (message.total_bytes == data.size()) {
    ++message.copying;
    ++copying_;
    lock.unlock();
    for (const Part& part : kept) part.payload->copy_to(data.data() + part.offset);
    lock.lock();
    --message.copying;
    --copying_;
  }
  finish_if_complete(channel, receive->sequence, message);
  return receive;
}

bool Inbox::deliver(int from, const FrameHeader& header, std::unique_ptr<Payload> payload) {
  std::unique_lock lock(mutex_);
  if (is_closed_) return true;
  Channel& channel = channels_[{from, header.tag}];
  const auto found = channel.open.find(header.sequence);
  if (found == channel.open.end() &&
      (header.sequence < channel.posted || header.sequence - channel.posted > kFurthestAhead)) {
    return false;
  }
  Message& message = found == channel.open.end() ? channel.open[header.sequence] : found->second;
  if (!message.is_known) {
    message.is_known = true;
    message.total_bytes = header.total_bytes;
  }
  const std::uint64_t bytes = payload->size();
  if (message.total_bytes != header.total_bytes || bytes > message.total_bytes - message.claimed_bytes) return false;
  message.claimed_bytes += bytes;

  if (message.receive == nullptr) {
    message.kept.push_back({header.offset, std::move(payload)});
  } else if (message.receive->data.size() == message.total_bytes) {
    std::byte* const target = message.receive->data.data() + header.offset;
    ++message.copying;
    ++copying_;
    lock.unlock();
    payload->copy_to(target);
    lock.lock();
    --message.copying;
    --copying_;
  }
  message.stored_bytes += bytes;
  finish_if_complete(channel, header.sequence, message);
  return true;
}

void Inbox::finish_if_complete(Channel& channel, std::uint64_t sequence, Message& message) {
  if (message.receive == nullptr || message.copying > 0 || message.stored_bytes < message.total_bytes) return;
  message.receive->came_bytes = message.total_bytes;
  message.receive->is_complete.store(true, std::memory_order_release);
  channel.open.erase(sequence);
  notifier_->notify();
}

bool Inbox::withdraw(PendingReceive& receive) {
  const std::lock_guard lock(mutex_);
  Channel& channel = channels_[{receive.from, receive.tag}];
  const auto found = channel.open.find(receive.sequence);
  if (found == channel.open.end() || found->second.copying > 0) return false;
  channel.open.erase(found);
  return true;
}

void Inbox::close() {
  std::unique_lock lock(mutex_);
  is_closed_ = true;
  while (copying_ > 0) {  // at most one part
    lock.unlock();
    std::this_thread::yield();
    lock.lock();
  }
  channels_.clear();
}

std::shared_ptr<Inbox> Inboxes::get(int context) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<Inbox>& inbox = inboxes_[context];
  if (inbox == nullptr) {
    inbox = std::make_shared<Inbox>();
    const bool is_old = context >= Communicator::kContextsPerEpoch && context < open_from_;
    if (is_closed_ || is_old) inbox->close();
  }
  return inbox;
}

void Inboxes::wake_all() {
  const std::lock_guard lock(mutex_);
  for (const auto& [context, inbox] : inboxes_) inbox->notifier()->notify();
}

void Inboxes::close_epochs_below(int context) {
  const std::lock_guard lock(mutex_);
  open_from_ = std::max(open_from_, context);
  const auto first = inboxes_.lower_bound(Communicator::kContextsPerEpoch), last = inboxes_.lower_bound(open_from_);
  for (auto inbox = first; inbox != last; ++inbox) inbox->second->close();
  inboxes_.erase(first, last);
}

void Inboxes::close_all() {
  const std::lock_guard lock(mutex_);
  is_closed_ = true;
  for (const auto& [context, inbox] : inboxes_) inbox->close();
}

}  // namespace trireme::comm::rpc
