// Records spans of time for `--trace`. A span is the begin and end of something labeled: an operation, a gradient
// bucket in transit, a wait. Labels and tracks are made before the steps; a thread then writes spans into its own
// memory, without locks or allocation. Spans that find no room are counted and dropped.
//
// Made by lab/bench/job_trace.hpp, which merges the spans of all processes into one file. Code that records spans holds
// a pointer to a track, null without a trace.
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
  step,           // one step of the benchmark or training
  compute,        // an operation
  optimizer,      // applying gradients
  communication,  // a bucket's gradients in transit, including waiting for other ranks
  waiting,        // idle: for gradients, new values or a device
  input,          // waiting for images, and copying them
  decode,         // making images, on input pipeline threads
  launch,         // submitting work to a device
  barrier,        // waiting for the process's other core groups, between or within operations
  task,           // of a pipeline's stage: work on a micro-batch or an update, whose operations are on another line
  bubble,         // a stage waits for another
  transfer,       // a message from or to another stage, including waiting for the other
};
inline constexpr int kSpanKinds = 12;
std::string_view to_string(SpanKind kind);

// Shared by spans. Unused fields are empty or 0.
struct SpanLabel {
  std::string name;
  SpanKind kind = SpanKind::compute;
  std::string detail = {};      // kind of operation; gradients of a bucket; what a bubble waits for
  std::int64_t bytes = 0;       // communication, transfer: as they travel
  std::int64_t link_bytes = 0;  // minimum that one rank sends or receives for them
  std::string peers = {};       // with whom
};

// Nanoseconds of the steady clock, whose zero differs between machines.
struct Span {
  std::int64_t begin = 0, end = 0;
  std::int32_t label = 0;
  std::int32_t number = 0;  // step, bucket or batch, from 1; 0: none
};

// The spans of one thread. One thread at a time adds; others may read only when nobody adds.
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
  std::vector<Span> spans_;  // all written once, so that the system has committed the memory
  std::size_t count_ = 0;
  std::int64_t dropped_ = 0;
};

class Recorder {
 public:
  // Default capacity of a track.
  explicit Recorder(std::size_t spans_per_track = 1 << 16) : spans_per_track_(spans_per_track) {}
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // Call before the steps, from any thread; tracks and labels live as long as the recorder. Tracks are found by name:
  // several parts know the thread that runs steps as kMainTrack.
  static constexpr const char* kMainTrack = "main";
  Track& track(const std::string& name, std::size_t capacity = 0);
  std::int32_t label(SpanLabel label);

  // Spans that begin while this is on are kept. Initially off.
  void set_recording(bool on) { recording_.store(on, std::memory_order_relaxed); }
  bool is_recording() const { return recording_.load(std::memory_order_relaxed); }

  // Read these when recording is over.
  const std::deque<Track>& tracks() const { return tracks_; }
  const std::vector<SpanLabel>& labels() const { return labels_; }

 private:
  std::size_t spans_per_track_;
  std::atomic<bool> recording_{false};
  std::mutex mutex_;
  std::deque<Track> tracks_;  // stable addresses
  std::vector<SpanLabel> labels_;
};

// A span from here to the end of the block. Without a trace it costs a pointer check.
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
