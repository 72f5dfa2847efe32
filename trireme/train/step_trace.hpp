// Chooses the traced steps and records whole steps. Made by Benchmark and Trainer, with or without a recorder.
#pragma once

#include <cstdint>

#include "trireme/perf/recorder.hpp"

namespace trireme::train {

class StepTrace {
 public:
  // Without a recorder, nothing here has an effect.
  explicit StepTrace(perf::Recorder* recorder) : recorder_(recorder) {
    if (recorder == nullptr) return;
    track_ = &recorder->track(perf::Recorder::kMainTrack);
    step_ = recorder->label({.name = "step", .kind = perf::SpanKind::step});
    settle_ = recorder->label({.name = "wait for the last values", .kind = perf::SpanKind::waiting});
  }

  // Call between steps: whether the following ones are traced.
  void set_recording(bool on) const {
    if (recorder_ != nullptr) recorder_->set_recording(on);
  }
  // Spans last to the end of the caller's block. Steps count from 1.
  perf::ScopedSpan step(std::int64_t number) const { return perf::ScopedSpan(track_, step_, number); }
  perf::ScopedSpan settle() const { return perf::ScopedSpan(track_, settle_); }

 private:
  perf::Recorder* recorder_;
  perf::Track* track_ = nullptr;
  std::int32_t step_ = 0, settle_ = 0;
};

}  // namespace trireme::train
