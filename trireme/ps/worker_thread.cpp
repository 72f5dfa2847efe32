// The part of WorkerSync on its thread: carries out orders, moves messages, writes new values.
#include <fmt/format.h>

#include <limits>

#include "trireme/base/clock.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/units.hpp"
#include "trireme/comm/backoff.hpp"
#include "trireme/ps/worker_sync.hpp"

namespace trireme::ps {
namespace {

// A server that waits for another worker reports it in time and can name it: let it go first.
constexpr double kPatience = 1.5;
constexpr auto kBetweenLooks = std::chrono::milliseconds(200);

}  // namespace

void WorkerSync::work() noexcept {
  try {
    if (options_.start_thread) options_.start_thread();
    comm::Backoff backoff;
    auto last_move = SteadyClock::now();
    while (take_orders()) {
      bool moved = false;
      for (int server = 0; server < std::ssize(servers_); ++server) moved = progress(server) || moved;
      if (moved) {
        backoff = {};
        last_move = SteadyClock::now();
        continue;
      }
      check_servers(last_move);
      communicator_.doze(backoff);
    }
  } catch (...) {
    const std::lock_guard lock(mutex_);
    error_ = std::current_exception();
    has_failed_.store(true, std::memory_order_relaxed);
    changed_.notify_all();
  }
}

// Sleeps while idle, but checks now and then whether the servers are still there.
bool WorkerSync::take_orders() {
  std::deque<Order> orders;
  {
    std::unique_lock lock(mutex_);
    const auto is_wanted = [this] { return stopping_ || !orders_.empty() || !is_idle(); };
    while (!ordered_.wait_for(lock, kBetweenLooks, is_wanted)) {
      if (!left_) check_presence();
    }
    if (stopping_) return false;
    std::swap(orders, orders_);
  }
  for (const Order& order : orders) carry_out(order);
  return true;
}

bool WorkerSync::is_idle() const {
  if (answers_missing_ > 0) return false;
  for (const ServerLink& server : servers_) {
    if (!server.outbox.empty()) return false;
  }
  return true;
}

void WorkerSync::carry_out(const Order& order) {
  switch (order.kind) {
    case Kind::push:
      for (Chunk& chunk : chunks_) {
        if (chunk.bucket != order.bucket) continue;
        chunk.awaited = true;
        const bool votes = &chunk == &chunks_[voting_chunk_];
        const Header header{.kind = Kind::push,
                            .chunk = chunk.index,
                            .version = chunk.version,
                            .learning_rate = order.learning_rate,
                            .weight = order.weight,
                            .vote = votes ? order.vote : 0,
                            .wants_value = options_.replicated ? 0U : 1U,
                            .traced = options_.recorder != nullptr && options_.recorder->is_recording() ? 1U : 0U};
        servers_[chunk.server].outbox.add(chunk.priority, header, std::as_bytes(chunk.gradients));
      }
      break;
    case Kind::pull:
      for (int chunk = 0; chunk < std::ssize(chunks_); ++chunk) send_pull(chunk, order.array);
      break;
    default:  // after what is under way, if it is the last
      left_ordered_ = left_ordered_ || order.kind == Kind::leave;
      const std::int64_t priority = left_ordered_ ? std::numeric_limits<std::int64_t>::max() : 0;
      for (ServerLink& server : servers_) server.outbox.add(priority, {.kind = order.kind});
  }
}

void WorkerSync::send_pull(int chunk, std::uint32_t array) {
  Chunk& pulled = chunks_[chunk];
  if (!has_array(pulled, array)) return;
  pulled.awaited = true;
  servers_[pulled.server].outbox.add(
      pulled.priority, {.kind = Kind::pull, .chunk = pulled.index, .version = pulled.version, .array = array});
}

bool WorkerSync::progress(int server) {
  ServerLink& link = servers_[server];
  bool moved = link.outbox.progress();
  if (left_ordered_) return note_left() || moved;
  const MessageReceiver::State state = link.inbox.progress();
  if (state == MessageReceiver::State::waiting) return moved;
  const Header header = link.inbox.header();
  if (state == MessageReceiver::State::header) {
    obey(server, header);
    return true;
  }
  link.inbox.next();
  if (header.kind == Kind::failed) fail(ErrorKind::failed, "{}: {}", name_of(server), link.text);
  if (header.kind == Kind::text) {
    const std::lock_guard lock(mutex_);
    count_answer();
  } else {
    finish_chunk(link.chunks[header.chunk], header);
  }
  return true;
}

// After the last message is out, the servers no longer matter.
bool WorkerSync::note_left() {
  const std::lock_guard lock(mutex_);
  if (left_ || !is_idle()) return false;
  left_ = true;
  changed_.notify_all();
  return true;
}

void WorkerSync::obey(int server, const Header& header) {
  ServerLink& link = servers_[server];
  if (header.kind == Kind::text || header.kind == Kind::failed) {
    link.text.resize(header.chunk);
    return link.inbox.expect(std::as_writable_bytes(std::span(link.text)));
  }
  const bool known = header.kind == Kind::value || header.kind == Kind::acknowledge;
  if (!known || header.chunk >= link.chunks.size()) {
    fail(ErrorKind::failed, "{} sent an invalid message: kind {}, chunk {} of {}", name_of(server),
         static_cast<std::uint32_t>(header.kind), header.chunk, link.chunks.size());
  }
  if (header.ended != 0) end_was_called_.store(true, std::memory_order_relaxed);
  const int id = link.chunks[header.chunk];
  Chunk& chunk = chunks_[id];
  if (!chunk.awaited || !has_array(chunk, header.array)) {
    fail(ErrorKind::failed, "{} sent values of '{}' that were not requested", name_of(server),
         buckets_[chunk.bucket].name);
  }
  if (header.kind == Kind::value) return link.inbox.expect(std::as_writable_bytes(chunk.arrays[header.array]));
  link.inbox.next();
  chunk.version = header.version;
  count_vote(id, header);
  bool all = false;
  {
    const std::lock_guard lock(mutex_);
    all = --acknowledgements_missing_ == 0;
  }
  for (int other = 0; all && other < std::ssize(chunks_); ++other) send_pull(other);
}

void WorkerSync::finish_chunk(int id, const Header& header) {
  Chunk& chunk = chunks_[id];
  chunk.awaited = false;
  if (header.array == 0) {  // state comes without values: ours stay as old as they are
    chunk.version = header.version;
    count_vote(id, header);
  }
  const std::lock_guard lock(mutex_);
  if (--missing_[chunk.bucket] == 0) {
    add_span(chunk.bucket);
    changed_.notify_all();
  }
  count_answer();
}

// Requires the mutex, as does recording the time of a push.
void WorkerSync::add_span(std::size_t bucket) {
  BucketTrace& trace = traces_[bucket];
  if (trace.pushed == 0) return;
  trace.track->add({.begin = trace.pushed,
                    .end = steady_nanoseconds(),
                    .label = trace.label,
                    .number = static_cast<std::int32_t>(bucket) + 1});
  trace.pushed = 0;
}

// Requires the mutex.
void WorkerSync::count_answer() {
  if (--answers_missing_ > 0) return;
  busy_seconds_ += seconds_since(*busy_since_);
  busy_since_.reset();
  changed_.notify_all();
}

void WorkerSync::count_vote(int id, const Header& header) {
  if (id != voting_chunk_) return;
  const std::lock_guard lock(mutex_);
  agreed_ = header.vote;
  vote_missing_ = false;
  changed_.notify_all();
}

void WorkerSync::check_presence() const {
  for (int server = 0; server < std::ssize(servers_); ++server) {
    if (communicator_.presence(workers_ + server) == comm::Presence::here) continue;
    fail(ErrorKind::failed, "lost {}: its connection has ended", name_of(server));
  }
}

void WorkerSync::check_servers(SteadyClock::time_point last_move) const {
  check_presence();
  const double waited = seconds_since(last_move);
  for (int server = 0; server < std::ssize(servers_); ++server) {
    if (waited < kPatience * options_.timeout_seconds) continue;
    for (const int id : servers_[server].chunks) {
      const Chunk& chunk = chunks_[id];
      if (!chunk.awaited) continue;
      fail(ErrorKind::failed, "{} has not answered for {}: new values of '{}' are missing (--comm-timeout)",
           name_of(server), format_seconds(waited), buckets_[chunk.bucket].name);
    }
  }
}

std::string WorkerSync::name_of(int server) const {
  const comm::Member& member = communicator_.members()[workers_ + server];
  return fmt::format("{} ({})", member.name.empty() ? fmt::format("ps {}", server) : member.name, member.host);
}

}  // namespace trireme::ps
