#include "trireme/parallel/pipeline_link.hpp"

#include <algorithm>

#include "trireme/base/clock.hpp"
#include "trireme/base/error.hpp"
#include "trireme/comm/backoff.hpp"

namespace trireme::parallel {

PipelineLink::PipelineLink(comm::Communicator& communicator, Options options)
    : communicator_(communicator.split(0, communicator.rank())), options_(std::move(options)) {
  communicator_->set_timeout(options_.timeout);
  if (options_.watch != nullptr) communicator_->set_judge(options_.watch->judge());
  thread_ = std::thread([this] { work(); });
}

PipelineLink::~PipelineLink() {
  stopping_.store(true, std::memory_order_release);
  changes_.fetch_add(1, std::memory_order_release);
  changes_.notify_all();
  const bool half_way = active_count_.load(std::memory_order_acquire) > 0;
  thread_.join();
  if (half_way) communicator_->abandon();
}

void PipelineLink::open(std::vector<StageMessage> messages) {
  messages_.clear();
  for (StageMessage& message : messages) {
    messages_.push_back({.what = std::move(message), .transfer = {}});
    if (options_.recorder != nullptr) add_label(messages_.back());
  }
}

void PipelineLink::add_label(Message& message) {
  const StageMessage& what = message.what;
  const std::string name = fmt::format("{} rank {}", what.sends ? "sends to" : "receives from", what.peer);
  message.line = &lines_.try_emplace(name, Line{.track = &options_.recorder->track(name)}).first->second;
  message.span.label =
      options_.recorder->label({.name = fmt::format("{} {}", what.sends ? "send" : "receive", what.name),
                                .kind = perf::SpanKind::transfer,
                                .bytes = std::ssize(what.memory),
                                .peers = fmt::format("rank {}", what.peer)});
}

void PipelineLink::add_span(const Message& message) {
  if (message.line == nullptr || !message.line->track->is_recording()) return;
  perf::Span span = message.span;
  span.begin = std::max(span.begin, message.line->end);
  span.end = message.line->end = steady_nanoseconds();
  message.line->track->add(span);
}

void PipelineLink::begin(int message) {
  check();
  if (options_.watch != nullptr) options_.watch->count();
  {
    const std::lock_guard lock(mutex_);
    Message& begun = messages_[message];
    const StageMessage& what = begun.what;
    communicator_->set_context(what.name);
    begun.is_active = true;
    if (begun.line != nullptr) begun.span.begin = steady_nanoseconds();
    begun.transfer = what.sends ? communicator_->start_send(what.memory, what.peer, what.tag)
                                : communicator_->start_receive(what.memory, what.peer, what.tag);
    active_.push_back(message);
    active_count_.store(static_cast<int>(active_.size()), std::memory_order_release);
  }
  changes_.fetch_add(1, std::memory_order_release);
  changes_.notify_one();
}

void PipelineLink::check() const {
  if (failed_.load(std::memory_order_acquire)) std::rethrow_exception(error_);
}

bool PipelineLink::done(int message) {
  check();
  const std::lock_guard lock(mutex_);
  if (messages_[message].is_active) poll();
  return !messages_[message].is_active;
}

void PipelineLink::wait(int message) {
  using namespace std::chrono_literals;
  const PeerWatch::Waiting waiting(options_.watch);
  std::chrono::duration<double> next_check = 100ms;
  comm::Backoff backoff;
  while (!done(message)) {
    backoff.pause();
    const auto waited = backoff.waited();
    if (waited < next_check) continue;
    next_check = waited + 100ms;
    const std::lock_guard lock(mutex_);
    const StageMessage& what = messages_[message].what;
    communicator_->set_context(what.name);
    communicator_->check_peers();
    if (!messages_[message].is_active) continue;
    communicator_->check_wait(what.sends ? "send" : "receive", what.peer, std::ssize(what.memory), waited);
  }
}

bool PipelineLink::poll() {
  const std::size_t before = active_.size();
  std::erase_if(active_, [this](int number) {
    Message& message = messages_[number];
    if (!communicator_->done(message.transfer)) return false;
    message.is_active = false;
    add_span(message);
    return true;
  });
  active_count_.store(static_cast<int>(active_.size()), std::memory_order_release);
  return active_.size() < before;
}

void PipelineLink::work() noexcept {
  try {
    if (options_.start_thread) options_.start_thread();
    comm::Backoff backoff;
    while (true) {
      const std::uint32_t seen = changes_.load(std::memory_order_acquire);  // first: the destructor changes it last
      if (stopping_.load(std::memory_order_acquire)) return;
      if (active_count_.load(std::memory_order_acquire) == 0) {
        changes_.wait(seen, std::memory_order_acquire);
        backoff = {};
        continue;
      }
      {
        const std::lock_guard lock(mutex_);
        if (poll()) backoff = {};
      }
      backoff.pause();
    }
  } catch (...) {
    error_ = std::current_exception();
    failed_.store(true, std::memory_order_release);
  }
}

}  // namespace trireme::parallel
