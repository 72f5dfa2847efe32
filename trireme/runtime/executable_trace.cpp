// The part of Executable that names the spans of its runs.
#include <fmt/format.h>

#include "trireme/runtime/executable.hpp"
#include "trireme/runtime/inter_op_pool.hpp"

namespace trireme {

void Executable::set_recorder(perf::Recorder& recorder) {
  using perf::SpanKind;
  trace_ = {};
  // The first group, and the first thread of a pool, is the thread that calls run().
  const auto track = [&](const char* what, int index) {
    trace_.tracks.push_back(
        &recorder.track(index == 0 ? perf::Recorder::kMainTrack : fmt::format("{} {}", what, index)));
  };
  if (pool_ == nullptr) {
    track("group of cores", place_.group);
  } else {
    for (int thread = 0; thread < pool_->threads(); ++thread) track("inter-op thread", thread);
  }
  if (!device_.is_host()) trace_.device = &recorder.track(device_.name());
  for (const Instruction& instruction : program_.instructions) {
    trace_.instructions.push_back(
        recorder.label({.name = instruction.name,
                        .kind = applies_gradients(instruction) ? SpanKind::optimizer : SpanKind::compute,
                        .detail = instruction.operation}));
  }
  trace_.wait = recorder.label({.name = "wait for bucket", .kind = SpanKind::waiting});
  trace_.end_exchange = recorder.label({.name = "wait for the end of the exchange", .kind = SpanKind::waiting});
  trace_.barrier = recorder.label({.name = "wait for other groups of cores", .kind = SpanKind::barrier});
  trace_.gradients = recorder.label({.name = "accumulate, merge, clip gradients", .kind = SpanKind::optimizer});
  trace_.launch = recorder.label({.name = "give work to the device", .kind = SpanKind::launch});
  trace_.wait_for_device = recorder.label({.name = "wait for the device", .kind = SpanKind::waiting});
  trace_.device_run = recorder.label({.name = "step on the device", .kind = SpanKind::compute});
}

}  // namespace trireme
