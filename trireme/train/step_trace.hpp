// Which steps of a run are traced, and the spans of steps as a whole. Made by Benchmark and by Trainer, with or
// without a recorder.
#pragma once

#include <cstdint>

#include "trireme/perf/recorder.hpp"

namespace trireme::train {

class StepTrace {
 public:
  // No recorder: all of this does nothing.
  explicit StepTrace(perf::Recorder* recorder) : recorder_(recorder) {
    if (recorder == nullptr) return;
    track_ = &recorder->track(perf::Recorder::kMainTrack);
    step_ = recorder->label({.name = "step", .kind = perf::SpanKind::step});
    settle_ = recorder->label({.name = "wait for the last values", .kind = perf::SpanKind::waiting});
  }

  // Between steps: whether those that follow are traced.
  void set_recording(bool on) const {
    if (recorder_ != nullptr) recorder_->set_recording(on);
  }
  // To the end of the caller's block. Steps count from 1.
  perf::ScopedSpan step(std::int64_t number) const { return perf::ScopedSpan(track_, step_, number); }
  perf::ScopedSpan settle() const { return perf::ScopedSpan(track_, settle_); }

 private:
  perf::Recorder* recorder_;
  perf::Track* track_ = nullptr;
  std::int32_t step_ = 0, settle_ = 0;
};

}  // namespace trireme::train
