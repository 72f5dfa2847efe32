#include "trireme/comm/grpc/outlet.hpp"

#include <fmt/format.h>

#include <condition_variable>
#include <deque>
#include <thread>

#include "trireme/comm/grpc/events.hpp"
#include "trireme/comm/grpc/outgoing_call.hpp"
#include "trireme/comm/grpc/security.hpp"

namespace trireme::comm::rpc {
namespace {

// A frame on its way.
struct Part {
  grpc::Slice front;  // the header, and the data where it is copied
  std::span<const std::byte> data;
  std::shared_ptr<Send> send;  // null where nothing of the caller's is referred to
};

// How many pieces of callers' memory gRPC refers to: it may outlive everything else here.
using BorrowCount = std::shared_ptr<std::atomic<int>>;
struct Borrowed {
  std::shared_ptr<Send> send;
  BorrowCount count;
};

// Writing and letting go of the memory are two steps: gRPC says of a write that it is done when it is on its way, and
// may read the memory after that.
constexpr int kStepsPerPart = 2;

grpc::ByteBuffer to_buffer(const Part& part, const BorrowCount& count) {
  if (part.send == nullptr) return {&part.front, 1};
  auto* const owner = new Borrowed{part.send, count};
  count->fetch_add(1, std::memory_order_relaxed);
  const auto let_go = [](void* given) {
    const std::unique_ptr<Borrowed> borrowed(static_cast<Borrowed*>(given));
    borrowed->send->finish();
    borrowed->count->fetch_sub(1, std::memory_order_release);
  };
  // gRPC takes memory that may be written to, and only reads it.
  auto* const memory = const_cast<std::byte*>(part.data.data());
  const grpc::Slice slices[] = {part.front, grpc::Slice(memory, part.data.size(), let_go, owner)};
  return {slices, 2};
}

grpc::Slice front_of(const FrameHeader& header, std::span<const std::byte> copied) {
  std::array<std::byte, FrameHeader::kBytes + Outlet::kCopiedBytes> bytes;
  const FrameBytes encoded = encode(header);
  const auto end = std::copy(encoded.begin(), encoded.end(), bytes.begin());
  std::copy(copied.begin(), copied.end(), end);
  return {bytes.data(), encoded.size() + copied.size()};
}

// What all streams of a process share.
struct Shared {
  const Caller& caller;
  Roster& roster;
  grpc::CompletionQueue queue;
  BorrowCount borrowed;
};

class Link;

// One call that never ends while all is well: frames go out, nothing comes in.
class Stream {
 public:
  Stream(Link& link, Shared& shared, int task);

  void start();
  // Under the link's mutex, as the next.
  void cancel() {
    if (call_ != nullptr) call_->cancel();
  }
  // The next part that waits, unless the stream is writing. It must be written then,
  [[nodiscard]] bool take(Part& part);
  // without the mutex.
  void write(const Part& part) { call_->stream().Write(to_buffer(part, borrowed_), written_.tag()); }

 private:
  void on_opened(const OutgoingCall::Outcome& outcome);
  void on_written(bool is_ok);
  void on_end();
  void on_finished();
  void on_settled();

  Link& link_;
  const BorrowCount borrowed_;
  const std::chrono::milliseconds longest_opening_;
  std::unique_ptr<OutgoingCall> call_;  // null: has ended
  grpc::ByteBuffer never_;
  grpc::Status status_;
  Event written_{[this](bool is_ok) { on_written(is_ok); }};
  Event half_closed_{[this](bool) { on_settled(); }};
  Event read_{[this](bool) { on_end(); }};
  Event finished_{[this](bool) { on_finished(); }};

  // Guarded by the link's mutex.
  bool is_started_ = false, is_writing_ = false, has_said_goodbye_ = false, is_over_ = false;
  int under_way_ = 1;           // operations, from starting on
  std::shared_ptr<Send> send_;  // of what is being written
};

// All streams to one task, and what waits for them.
class Link {
 public:
  Link(Shared& shared, int task) : shared_(shared), task_(task) { streams.reserve(shared.caller.options.streams); }

  void open() {
    const std::lock_guard lock(mutex);
    if (streams.empty() && !is_broken && !is_leaving) add_stream();
  }

  bool post(const FrameHeader& message, std::span<const std::byte> data, const std::shared_ptr<Send>& send) {
    std::unique_lock lock(mutex);
    // The other direction may have been the first to notice: our own writes would still find room somewhere.
    if (is_broken || shared_.roster.presence(task_) != Presence::here) return false;
    const bool is_copied = data.size() <= Outlet::kCopiedBytes;
    if (is_copied) {
      queue.push_back({front_of(message, data), {}, nullptr});
    } else {
      push_parts(message, data, send);
    }
    pump(lock);
    const bool lacks_streams = !is_copied && streams.size() < streams.capacity();
    if (!queue.empty() && (streams.empty() || lacks_streams)) add_stream();
    return true;
  }

  void leave() {
    std::unique_lock lock(mutex);
    is_leaving = true;
    pump(lock);
  }

  // What waits goes to the streams that are idle.
  void pump(std::unique_lock<std::mutex>& lock) {
    for (std::size_t i = 0; i < streams.size(); ++i) {  // there may be more when the mutex is taken again
      Stream& stream = *streams[i];
      Part part;
      if (!stream.take(part)) continue;
      lock.unlock();
      stream.write(part);
      lock.lock();
    }
  }

  void cancel() {
    const std::lock_guard lock(mutex);
    for (const auto& stream : streams) stream->cancel();
  }

  // Whether all streams have ended.
  bool wait_for_end(std::chrono::steady_clock::time_point until) {
    std::unique_lock lock(mutex);
    return ended_.wait_until(lock, until, [&] { return open_streams_ == 0; });
  }

  // What waits can never be sent, and nothing can any more.
  void break_off() {
    std::deque<Part> unsent;
    {
      const std::lock_guard lock(mutex);
      is_broken = true;
      unsent.swap(queue);
    }
    for (const Part& part : unsent) {
      if (part.send == nullptr) continue;
      part.send->fail();
      part.send->finish(kStepsPerPart);
    }
    cancel();
  }

  // A stream has ended otherwise than by our goodbye: the task has left, or is lost.
  void end(const grpc::Status& status) {
    if (status.ok()) {
      shared_.roster.leave(task_);
    } else {
      shared_.roster.lose(task_, describe_end(status));
    }
    break_off();
  }
  void lose(const std::string& reason) {
    shared_.roster.lose(task_, reason);
    break_off();
  }

  void stream_ended() {  // under the mutex
    --open_streams_;
    ended_.notify_all();
  }

  std::mutex mutex;
  std::deque<Part> queue;
  bool is_leaving = false, is_broken = false;
  std::vector<std::unique_ptr<Stream>> streams;  // none goes before the link does

 private:
  // Never as many as to move those that there are.
  void add_stream() {
    streams.push_back(std::make_unique<Stream>(*this, shared_, task_));
    ++open_streams_;
    streams.back()->start();
  }

  void push_parts(FrameHeader header, std::span<const std::byte> data, const std::shared_ptr<Send>& send) {
    const auto most = static_cast<std::size_t>(shared_.caller.options.part_bytes);
    const std::size_t parts = (data.size() + most - 1) / most;
    send->begin(static_cast<int>(parts) * kStepsPerPart);
    for (std::size_t at = 0; at < data.size(); at += most) {
      header.offset = at;
      queue.push_back({front_of(header, {}), data.subspan(at, std::min(most, data.size() - at)), send});
    }
  }

  Shared& shared_;
  const int task_;
  int open_streams_ = 0;
  std::condition_variable ended_;
};

Stream::Stream(Link& link, Shared& shared, int task)
    : link_(link),
      borrowed_(shared.borrowed),
      longest_opening_(std::chrono::duration_cast<std::chrono::milliseconds>(shared.caller.options.join_timeout)),
      call_(std::make_unique<OutgoingCall>(shared.caller, task, kDataMethod, shared.queue)) {}

void Stream::start() {
  call_->open({.longest = longest_opening_, .waits_for_listener = false},
              [this](const OutgoingCall::Outcome& outcome) { on_opened(outcome); });
}

void Stream::on_opened(const OutgoingCall::Outcome& outcome) {
  if (outcome.answer != OutgoingCall::Answer::welcome) {
    {
      const std::lock_guard lock(link_.mutex);
      is_over_ = true;
    }
    link_.lose(outcome.reason);
    return on_settled();
  }
  // Nothing is ever read, but it tells when the stream ends. It takes the place of this operation.
  call_->stream().Read(&never_, read_.tag());
  std::unique_lock lock(link_.mutex);
  is_started_ = true;
  link_.pump(lock);
}

bool Stream::take(Part& part) {
  if (!is_started_ || is_writing_ || has_said_goodbye_ || is_over_) return false;
  if (!link_.queue.empty()) {
    part = std::move(link_.queue.front());
    link_.queue.pop_front();
  } else if (link_.is_leaving && !link_.is_broken) {
    // With the number of streams, because those that the other side has not heard of yet may have parts for it.
    part.front = front_of({.kind = FrameKind::goodbye, .sequence = link_.streams.size()}, {});
    has_said_goodbye_ = true;
  } else {
    return false;
  }
  is_writing_ = true;
  ++under_way_;
  send_ = part.send;
  return true;
}

void Stream::on_written(bool is_ok) {
  std::shared_ptr<Send> send;
  Part next;
  bool half_close = false, goes_on = false;
  {
    const std::lock_guard lock(link_.mutex);
    is_writing_ = false;
    send = std::move(send_);
    half_close = is_ok && has_said_goodbye_ && !is_over_;
    goes_on = is_ok && take(next);
    if (goes_on) --under_way_;  // writing it takes the place of this operation, as half-closing does
  }
  if (send != nullptr) {
    if (!is_ok) send->fail();
    send->finish();
  }
  if (half_close) {
    call_->stream().WritesDone(half_closed_.tag());
  } else if (goes_on) {
    write(next);
  } else {
    on_settled();
  }
}

void Stream::on_end() {
  {
    const std::lock_guard lock(link_.mutex);
    is_over_ = true;
  }
  call_->stream().Finish(&status_, finished_.tag());  // takes the place of the reading
}

void Stream::on_finished() {
  bool is_goodbye = false;
  {
    const std::lock_guard lock(link_.mutex);
    is_goodbye = has_said_goodbye_ && status_.ok();
  }
  if (!is_goodbye) link_.end(status_);
  on_settled();
}

// The link, and with it this stream, may be gone afterwards.
void Stream::on_settled() {
  const std::lock_guard lock(link_.mutex);
  if (--under_way_ > 0) return;
  // While there is a call, gRPC holds on to the memory of what could not be written.
  call_.reset();
  link_.stream_ended();
}

}  // namespace

class Outlet::Impl {
 public:
  Impl(const Caller& caller, Roster& roster) : shared_{caller, roster, {}, std::make_shared<std::atomic<int>>(0)} {
    for (std::size_t task = 0; task < caller.options.tasks.size(); ++task) {
      links_.push_back(std::make_unique<Link>(shared_, static_cast<int>(task)));
    }
    thread_ = std::thread([this] { turn(shared_.queue); });
  }

  ~Impl() {
    for (const auto& link : links_) link->cancel();
    for (const auto& link : links_) link->wait_for_end(std::chrono::steady_clock::now() + std::chrono::hours(1));
    shared_.queue.Shutdown();
    thread_.join();
  }

  grpc::CompletionQueue& queue() { return shared_.queue; }
  Link& link(int task) { return *links_[task]; }

  void leave(std::chrono::milliseconds longest) {
    const auto until = std::chrono::steady_clock::now() + longest;
    for (const auto& link : links_) link->leave();
    for (const auto& link : links_) link->wait_for_end(until);
  }

  bool break_off(std::chrono::milliseconds longest) {
    const auto until = std::chrono::steady_clock::now() + longest;
    for (const auto& link : links_) link->break_off();
    for (const auto& link : links_) link->wait_for_end(until);
    while (shared_.borrowed->load(std::memory_order_acquire) > 0) {
      if (std::chrono::steady_clock::now() > until) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
  }

 private:
  Shared shared_;
  std::vector<std::unique_ptr<Link>> links_;  // by task; most have no stream
  std::thread thread_;
};

Outlet::Outlet(const Caller& caller, Roster& roster) : impl_(std::make_unique<Impl>(caller, roster)) {}
Outlet::~Outlet() = default;

grpc::CompletionQueue& Outlet::queue() { return impl_->queue(); }

void Outlet::open(int task) { impl_->link(task).open(); }

bool Outlet::post(int task, const FrameHeader& header, std::span<const std::byte> data,
                  const std::shared_ptr<Send>& send) {
  return impl_->link(task).post(header, data, send);
}

void Outlet::leave(std::chrono::milliseconds longest) { impl_->leave(longest); }

bool Outlet::break_off(std::chrono::milliseconds longest) { return impl_->break_off(longest); }

}  // namespace trireme::comm::rpc
