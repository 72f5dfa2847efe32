#include "trireme/comm/grpc/sender.hpp"

#include <condition_variable>
#include <deque>

#include "trireme/base/clock.hpp"
#include "trireme/comm/grpc/outgoing_call.hpp"

namespace trireme::comm::rpc {
namespace {

struct OutgoingFrame {
  grpc::Slice front;  // the header, and the data if copied
  std::span<const std::byte> data;
  std::shared_ptr<PendingSend> send;  // null if no caller's memory is used
  int context = 0;
};

// Number of callers' memory pieces that gRPC refers to; may outlive everything else here.
using BorrowCount = std::shared_ptr<std::atomic<int>>;
struct Borrowed {
  std::shared_ptr<PendingSend> send;
  BorrowCount count;
};

// Writing, then releasing the memory: gRPC reports a queued write as done but may read the memory later.
constexpr int kStepsPerPart = 2;

grpc::ByteBuffer to_buffer(const OutgoingFrame& frame, const BorrowCount& count) {
  if (frame.send == nullptr) return {&frame.front, 1};
  auto* const owner = new Borrowed{frame.send, count};
  count->fetch_add(1, std::memory_order_relaxed);
  const auto let_go = [](void* given) {
    const std::unique_ptr<Borrowed> borrowed(static_cast<Borrowed*>(given));
    borrowed->send->finish();
    borrowed->count->fetch_sub(1, std::memory_order_release);
  };
  // gRPC takes mutable memory but only reads it.
  auto* const memory = const_cast<std::byte*>(frame.data.data());
  const grpc::Slice slices[] = {frame.front, grpc::Slice(memory, frame.data.size(), let_go, owner)};
  return {slices, 2};
}

grpc::Slice front_of(const FrameHeader& header, std::span<const std::byte> copied) {
  std::array<std::byte, FrameHeader::kBytes + Sender::kCopiedBytes> bytes;
  const FrameBytes encoded = encode(header);
  const auto end = std::copy(encoded.begin(), encoded.end(), bytes.begin());
  std::copy(copied.begin(), copied.end(), end);
  return {bytes.data(), encoded.size() + copied.size()};
}

}  // namespace

// Shared by all streams of a process.
struct SendContext {
  const Caller& caller;
  Roster& roster;
  grpc::CompletionQueue queue;
  BorrowCount borrowed;
};

// A call that stays open: frames go out, nothing comes in.
class DataStream {
 public:
  DataStream(PeerQueue& peer, SendContext& shared, int task);

  void start();
  // Requires the mutex of the peer's queue, as does take().
  void cancel() {
    if (call_ != nullptr) call_->cancel();
  }
  // The next waiting frame, unless the stream is writing. The caller must then write() it
  [[nodiscard]] bool take(OutgoingFrame& frame);
  // without holding the mutex.
  void write(const OutgoingFrame& frame) { call_->stream().Write(to_buffer(frame, borrowed_), written_.tag()); }

 private:
  void on_opened(const OutgoingCall::Outcome& outcome);
  void on_written(bool is_ok);
  void on_end();
  void on_finished();
  void end_operation();

  PeerQueue& peer_;
  const BorrowCount borrowed_;
  const std::chrono::milliseconds longest_opening_;
  std::unique_ptr<OutgoingCall> call_;  // null: has ended
  grpc::ByteBuffer never_;
  grpc::Status status_;
  Completion written_{[this](bool is_ok) { on_written(is_ok); }};
  Completion half_closed_{[this](bool) { end_operation(); }};
  Completion read_{[this](bool) { on_end(); }};
  Completion finished_{[this](bool) { on_finished(); }};

  // Guarded by the mutex of the peer's queue.
  bool is_started_ = false, is_writing_ = false, has_sent_end_ = false, is_over_ = false;
  int under_way_ = 1;                  // operations, including the start
  std::shared_ptr<PendingSend> send_;  // of what is being written
};

// All streams to one task, and the frames that wait for them.
class PeerQueue {
 public:
  PeerQueue(SendContext& shared, int task) : shared_(shared), task_(task) {
    streams.reserve(shared.caller.options.streams);
  }

  void open() {
    const std::lock_guard lock(mutex);
    if (streams.empty() && !is_broken && !is_leaving) add_stream();
  }

  bool post(const FrameHeader& message, std::span<const std::byte> data, const std::shared_ptr<PendingSend>& send) {
    std::unique_lock lock(mutex);
    // The other direction may notice first: our own writes would still find buffer space.
    if (is_broken || shared_.roster.presence(task_) != Presence::here) return false;
    const bool is_copied = data.size() <= Sender::kCopiedBytes;
    if (is_copied) {
      queue.push_back({front_of(message, data), {}, nullptr, message.context});
    } else {
      push_parts(message, data, send);
    }
    start_writes(lock);
    const bool lacks_streams = !is_copied && streams.size() < streams.capacity();
    if (!queue.empty() && (streams.empty() || lacks_streams)) add_stream();
    return true;
  }

  void leave() {
    std::unique_lock lock(mutex);
    is_leaving = true;
    start_writes(lock);
  }

  // Gives waiting frames to idle streams.
  void start_writes(std::unique_lock<std::mutex>& lock) {
    for (std::size_t i = 0; i < streams.size(); ++i) {  // others may be added while the mutex is released
      DataStream& stream = *streams[i];
      OutgoingFrame frame;
      if (!stream.take(frame)) continue;
      lock.unlock();
      stream.write(frame);
      lock.lock();
    }
  }

  void cancel() {
    const std::lock_guard lock(mutex);
    for (const auto& stream : streams) stream->cancel();
  }

  bool wait_for_end(SteadyClock::time_point until) {
    std::unique_lock lock(mutex);
    return ended_.wait_until(lock, until, [&] { return open_streams_ == 0; });
  }

  // Waiting frames fail, and so do all later ones.
  void break_off() {
    std::deque<OutgoingFrame> unsent;
    {
      const std::lock_guard lock(mutex);
      is_broken = true;
      unsent.swap(queue);
    }
    fail_frames(unsent);
    cancel();
  }

  void drop(int first, int last) {
    std::deque<OutgoingFrame> all, dropped;
    {
      const std::lock_guard lock(mutex);
      all.swap(queue);
      for (OutgoingFrame& frame : all) {
        const bool is_dropped = frame.context >= first && frame.context < last;
        (is_dropped ? dropped : queue).push_back(std::move(frame));
      }
    }
    fail_frames(dropped);
  }

  // The peer ended a stream: the task has left or is lost.
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
  std::deque<OutgoingFrame> queue;
  bool is_leaving = false, is_broken = false;
  std::vector<std::unique_ptr<DataStream>> streams;  // destroyed only with the queue

 private:
  static void fail_frames(const std::deque<OutgoingFrame>& frames) {
    for (const OutgoingFrame& frame : frames) {
      if (frame.send == nullptr) continue;
      frame.send->fail();
      frame.send->finish(kStepsPerPart);
    }
  }

  // Never enough to reallocate the vector.
  void add_stream() {
    streams.push_back(std::make_unique<DataStream>(*this, shared_, task_));
    ++open_streams_;
    streams.back()->start();
  }

  void push_parts(FrameHeader header, std::span<const std::byte> data, const std::shared_ptr<PendingSend>& send) {
    const auto most = static_cast<std::size_t>(shared_.caller.options.part_bytes);
    const std::size_t parts = (data.size() + most - 1) / most;
    send->begin(static_cast<int>(parts) * kStepsPerPart);
    for (std::size_t at = 0; at < data.size(); at += most) {
      header.offset = at;
      queue.push_back({front_of(header, {}), data.subspan(at, std::min(most, data.size() - at)), send, header.context});
    }
  }

  SendContext& shared_;
  const int task_;
  int open_streams_ = 0;
  std::condition_variable ended_;
};

DataStream::DataStream(PeerQueue& peer, SendContext& shared, int task)
    : peer_(peer),
      borrowed_(shared.borrowed),
      longest_opening_(std::chrono::duration_cast<std::chrono::milliseconds>(shared.caller.options.join_timeout)),
      call_(std::make_unique<OutgoingCall>(shared.caller, task, kDataMethod, shared.queue)) {}

void DataStream::start() {
  call_->open({.timeout = longest_opening_, .waits_for_listener = false},
              [this](const OutgoingCall::Outcome& outcome) { on_opened(outcome); });
}

void DataStream::on_opened(const OutgoingCall::Outcome& outcome) {
  if (outcome.answer != OutgoingCall::Answer::accepted) {
    {
      const std::lock_guard lock(peer_.mutex);
      is_over_ = true;
    }
    peer_.lose(outcome.reason);
    return end_operation();
  }
  // Nothing is ever read, but this reports the end of the stream. Takes the place of the current operation.
  call_->stream().Read(&never_, read_.tag());
  std::unique_lock lock(peer_.mutex);
  is_started_ = true;
  peer_.start_writes(lock);
}

bool DataStream::take(OutgoingFrame& frame) {
  if (!is_started_ || is_writing_ || has_sent_end_ || is_over_) return false;
  if (!peer_.queue.empty()) {
    frame = std::move(peer_.queue.front());
    peer_.queue.pop_front();
  } else if (peer_.is_leaving && !peer_.is_broken) {
    // Includes the number of streams, since some that the peer does not know yet may have parts for it.
    frame.front = front_of({.kind = FrameKind::end, .sequence = peer_.streams.size()}, {});
    has_sent_end_ = true;
  } else {
    return false;
  }
  is_writing_ = true;
  ++under_way_;
  send_ = frame.send;
  return true;
}

void DataStream::on_written(bool is_ok) {
  std::shared_ptr<PendingSend> send;
  OutgoingFrame next;
  bool half_close = false, goes_on = false;
  {
    const std::lock_guard lock(peer_.mutex);
    is_writing_ = false;
    send = std::move(send_);
    half_close = is_ok && has_sent_end_ && !is_over_;
    goes_on = is_ok && take(next);
    if (goes_on) --under_way_;  // the write takes the place of this operation, as half-closing does
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
    end_operation();
  }
}

void DataStream::on_end() {
  {
    const std::lock_guard lock(peer_.mutex);
    is_over_ = true;
  }
  call_->stream().Finish(&status_, finished_.tag());  // takes the place of the read
}

void DataStream::on_finished() {
  bool was_end = false;
  {
    const std::lock_guard lock(peer_.mutex);
    was_end = has_sent_end_ && status_.ok();
  }
  if (!was_end) peer_.end(status_);
  end_operation();
}

// The queue, and with it this stream, may be gone afterwards.
void DataStream::end_operation() {
  const std::lock_guard lock(peer_.mutex);
  if (--under_way_ > 0) return;
  // While there is a call, gRPC holds on to the memory of what could not be written.
  call_.reset();
  peer_.stream_ended();
}

Sender::Sender(const Caller& caller, Roster& roster)
    : shared_(new SendContext{caller, roster, {}, std::make_shared<std::atomic<int>>(0)}) {
  for (std::size_t task = 0; task < caller.options.tasks.size(); ++task) {
    peers_.push_back(std::make_unique<PeerQueue>(*shared_, static_cast<int>(task)));
  }
  thread_ = std::thread([this] { run_queue(shared_->queue); });
}

Sender::~Sender() {
  for (const auto& peer : peers_) peer->cancel();
  for (const auto& peer : peers_) peer->wait_for_end(SteadyClock::now() + std::chrono::hours(1));
  shared_->queue.Shutdown();
  thread_.join();
}

grpc::CompletionQueue& Sender::queue() { return shared_->queue; }

void Sender::open(int task) { peers_[task]->open(); }

bool Sender::post(int task, const FrameHeader& header, std::span<const std::byte> data,
                  const std::shared_ptr<PendingSend>& send) {
  return peers_[task]->post(header, data, send);
}

void Sender::leave(std::chrono::milliseconds longest) {
  const auto until = SteadyClock::now() + longest;
  for (const auto& peer : peers_) peer->leave();
  for (const auto& peer : peers_) peer->wait_for_end(until);
}

bool Sender::break_off(std::chrono::milliseconds longest) {
  const auto until = SteadyClock::now() + longest;
  for (const auto& peer : peers_) peer->break_off();
  for (const auto& peer : peers_) peer->wait_for_end(until);
  return wait_for_memory(until);
}

bool Sender::drop(int first, int last, std::chrono::milliseconds longest) {
  for (const auto& peer : peers_) peer->drop(first, last);
  return wait_for_memory(SteadyClock::now() + longest);
}

void Sender::lose(int task, const std::string& reason) { peers_[task]->lose(reason); }

bool Sender::wait_for_memory(SteadyClock::time_point until) const {
  while (shared_->borrowed->load(std::memory_order_acquire) > 0) {
    if (SteadyClock::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace trireme::comm::rpc
