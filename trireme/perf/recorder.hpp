// What happened when: spans of time that the threads of a process leave while they work, for `--trace`. A span is the
// begin and the end of something that has a label: an operation of the program, a bucket of gradients on its way, a
// wait. Labels and tracks are made before the steps; a span is then written into memory that its thread has for itself,
// without a lock or an allocation. What finds no room is counted and left out.
//
// Made by lab/job_trace.hpp, which also brings the spans of all processes into one file. Whoever leaves spans has a
// pointer to a track; where nobody traces, it is null.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trireme/base/clock.hpp"

namespace trireme::perf {

enum class SpanKind : std::uint8_t {
  step,           // one step as the benchmark or the training sees it
  compute,        // an operation
  optimizer,      // applying gradients
  communication,  // gradients of a bucket on their way, waiting for other ranks included
  waiting,        // with nothing to do: for gradients, for new values, for a device
  input,          // waiting for images, and putting them in place
  decode,         // making images, on threads of the input pipeline
  launch,         // giving work to a device that is not the host
  barrier,        // waiting for other groups of cores of the process, between operations or in the middle of one
};
inline constexpr int kSpanKinds = 9;
std::string_view to_string(SpanKind kind);

// What spans have in common. What does not apply is empty or 0.
struct SpanLabel {
  std::string name;
  SpanKind kind = SpanKind::compute;
  std::string detail = {};      // the kind of operation; the gradients of a bucket
  std::int64_t bytes = 0;       // communication: as they travel
  std::int64_t link_bytes = 0;  // and those that one rank sends or receives because of them at least
  std::string peers = {};       // with whom
};

// Nanoseconds of the steady clock, which has another zero on each machine.
struct Span {
  std::int64_t begin = 0, end = 0;
  std::int32_t label = 0;
  std::int32_t number = 0;  // which step, bucket or batch, from 1; 0: none
};

inline std::int64_t steady_nanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(SteadyClock::now().time_since_epoch()).count();
}

// The spans of one thread. One thread at a time adds to it; others read it when nobody does.
class Track {
 public:
  Track(std::string name, std::size_t capacity, const std::atomic<bool>& recording)
      : name_(std::move(name)), recording_(recording), spans_(capacity) {}

  bool is_recording() const { return recording_.load(std::memory_order_relaxed); }
  void add(const Span& span) {
    if (count_ < spans_.size()) {
      spans_[count_++] = span;
    } else {
      ++dropped_;
    }
  }

  const std::string& name() const { return name_; }
  std::vector<Span> spans() const { return {spans_.begin(), spans_.begin() + static_cast<std::ptrdiff_t>(count_)}; }
  std::int64_t dropped() const { return dropped_; }

 private:
  std::string name_;
  const std::atomic<bool>& recording_;
  std::vector<Span> spans_;  // all written once, so that the system has given the memory
  std::size_t count_ = 0;
  std::int64_t dropped_ = 0;
};

class Recorder {
 public:
  // Room for so many spans on each track that does not say otherwise.
  explicit Recorder(std::size_t spans_per_track = 1 << 16) : spans_per_track_(spans_per_track) {}
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // Before the steps, from any thread; both live as long as the recorder. A track is found again by its name: the
  // thread that runs steps is known to several parts as kMainTrack.
  static constexpr const char* kMainTrack = "main";
  Track& track(const std::string& name, std::size_t capacity = 0);
  std::int32_t label(SpanLabel label);

  // Spans that begin while this is on are kept. Off at first.
  void set_recording(bool on) { recording_.store(on, std::memory_order_relaxed); }
  bool is_recording() const { return recording_.load(std::memory_order_relaxed); }

  // When all is over.
  const std::deque<Track>& tracks() const { return tracks_; }
  const std::vector<SpanLabel>& labels() const { return labels_; }

 private:
  std::size_t spans_per_track_;
  std::atomic<bool> recording_{false};
  std::mutex mutex_;
  std::deque<Track> tracks_;  // stay where they are
  std::vector<SpanLabel> labels_;
};

// A span from here to the end of the block. Costs a look at a pointer where nobody traces.
class ScopedSpan {
 public:
  ScopedSpan(Track* track, std::int32_t label, std::int64_t number = 0) {
    if (track == nullptr || !track->is_recording()) return;
    track_ = track;
    span_ = {.begin = steady_nanoseconds(), .label = label, .number = static_cast<std::int32_t>(number)};
  }
  ~ScopedSpan() {
    if (track_ == nullptr) return;
    span_.end = steady_nanoseconds();
    track_->add(span_);
  }
  ScopedSpan(const ScopedSpan&) = delete;
  ScopedSpan& operator=(const ScopedSpan&) = delete;

 private:
  Track* track_ = nullptr;
  Span span_;
};

}  // namespace trireme::perf
