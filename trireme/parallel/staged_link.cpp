#include "trireme/parallel/staged_link.hpp"

#include <algorithm>

#include "trireme/comm/backoff.hpp"

namespace trireme::parallel {

void StagedLink::open(std::vector<StageMessage> messages) {
  constexpr std::size_t kAlignment = 256;
  const auto padded = [](const StageMessage& message) {
    return (message.memory.size() + kAlignment - 1) / kAlignment * kAlignment;
  };
  std::size_t bytes = 0;
  for (const StageMessage& message : messages) bytes += padded(message);
  staging_ = device_.allocate_staging(static_cast<std::int64_t>(bytes));
  messages_.clear();
  auto* on_host = static_cast<std::byte*>(staging_.at(0));
  std::vector<StageMessage> staged = messages;
  for (std::size_t number = 0; number < messages.size(); ++number) {
    staged[number].memory = {on_host, messages[number].memory.size()};
    messages_.push_back({.what = std::move(messages[number]), .on_host = on_host});
    on_host += padded(messages_.back().what);
  }
  hosts_->open(std::move(staged));
}

void StagedLink::begin(int message) {
  send_downloaded();
  Message& begun = messages_[message];
  begun.begun = device_.record_event();
  begun.is_active = true;
  if (begun.what.sends) {
    hosts_->wait(message);  // the last step's
    download(begun);
    downloading_.push_back(message);
  } else {
    if (begun.copied >= 0) device_.wait_event_on_host(begun.copied);  // the last step's
    hosts_->begin(message);
  }
}

bool StagedLink::done(int message) {
  send_downloaded();
  Message& ended = messages_[message];
  if (!ended.is_active) return true;
  const bool is_done = ended.what.sends
                           ? std::find(downloading_.begin(), downloading_.end(), message) == downloading_.end()
                           : hosts_->done(message);
  if (!is_done) return false;
  if (!ended.what.sends) upload(ended);
  ended.is_active = false;
  return true;
}

// While messages leave the device, looks for both.
void StagedLink::wait(int message) {
  comm::Backoff backoff;
  while (!done(message)) downloading_.empty() ? hosts_->wait(message) : backoff.pause();
}

void StagedLink::download(Message& message) {
  device_.set_stream(device_.outward_stream());
  device_.wait_event(message.begun);
  device_.download(message.on_host, message.what.memory.data(), std::ssize(message.what.memory));
  message.copied = device_.record_event();
  device_.set_stream(0);
}

void StagedLink::upload(Message& message) {
  device_.set_stream(device_.inward_stream());
  device_.wait_event(message.begun);
  device_.upload(message.what.memory.data(), message.on_host, std::ssize(message.what.memory));
  message.copied = device_.record_event();
  device_.set_stream(0);
  device_.wait_event(message.copied);
}

void StagedLink::send_downloaded() {
  for (; !downloading_.empty() && device_.has_passed(messages_[downloading_.front()].copied);
       downloading_.pop_front()) {
    hosts_->begin(downloading_.front());
  }
}

}  // namespace trireme::parallel
