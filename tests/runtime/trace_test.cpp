// The spans that runs of a program leave.
#include <gtest/gtest.h>

#include "tests/support/apart_device.hpp"
#include "tests/train/small_training.hpp"
#include "trireme/plan/schedule.hpp"

namespace trireme {
namespace {

using perf::SpanKind;
using testkit::SmallTraining;

std::vector<perf::Span> spans_of(const perf::Recorder& recorder, SpanKind kind) {
  std::vector<perf::Span> spans;
  for (const perf::Track& track : recorder.tracks()) {
    for (const perf::Span& span : track.spans()) {
      if (recorder.labels()[span.label].kind == kind) spans.push_back(span);
    }
  }
  return spans;
}

TEST(TracedRun, HasASpanForEveryInstruction) {
  SmallTraining training(4, optimizer_rule(op::OptimizerKind::momentum));
  perf::Recorder recorder;
  training.step->set_recorder(recorder);
  training.run(0);  // not recorded
  recorder.set_recording(true);
  training.run(4);
  training.run(8);
  recorder.set_recording(false);
  std::size_t operations = 0, updates = 0;
  for (const Instruction& instruction : training.step->program().instructions) {
    if (!instruction.once) ++(applies_gradients(instruction) ? updates : operations);
  }
  EXPECT_GT(updates, 1u);
  EXPECT_EQ(spans_of(recorder, SpanKind::compute).size(), 2 * operations);
  EXPECT_EQ(spans_of(recorder, SpanKind::optimizer).size(), 2 * updates);
  for (const perf::Span& span : spans_of(recorder, SpanKind::compute)) {
    EXPECT_FALSE(recorder.labels()[span.label].detail.empty());
  }
}

TEST(TracedRun, OfSeveralInterOpThreadsHasATrackForEach) {
  SmallTraining training(4, optimizer_rule(op::OptimizerKind::sgd));
  SessionOptions options;
  options.compile.inter_threads = 3;
  Session session(training.graph, *training.backend, options);
  Executable& step = session.prepare(training.fetches);
  perf::Recorder recorder;
  step.set_recorder(recorder);
  recorder.set_recording(true);
  for (int i = 0; i < 5; ++i) step.run();
  ASSERT_EQ(recorder.tracks().size(), 3u);
  std::size_t instructions = 0;
  for (const Instruction& instruction : step.program().instructions) instructions += instruction.once ? 0 : 1;
  EXPECT_EQ(spans_of(recorder, SpanKind::compute).size() + spans_of(recorder, SpanKind::optimizer).size(),
            5 * instructions);
  for (const perf::Track& track : recorder.tracks()) {
    std::int64_t last = 0;
    for (const perf::Span& span : track.spans()) {  // a thread does one thing at a time
      EXPECT_GE(span.begin, last);
      last = span.end;
    }
  }
}

TEST(TracedRun, OnADeviceIsOneSpanOfTheDevice) {
  SmallTraining training(4, optimizer_rule(op::OptimizerKind::sgd), 7, 5, std::make_unique<testkit::ApartBackend>());
  perf::Recorder recorder;
  training.step->set_recorder(recorder);
  recorder.set_recording(true);
  for (int i = 0; i < 3; ++i) {
    training.run(4 * i);
    training.step->wait();
  }
  ASSERT_EQ(recorder.tracks().size(), 2u);
  EXPECT_EQ(recorder.tracks()[1].name(), "apart");
  EXPECT_EQ(recorder.tracks()[1].spans().size(), 3u);
  EXPECT_EQ(spans_of(recorder, SpanKind::launch).size(), 3u);
  EXPECT_EQ(spans_of(recorder, SpanKind::waiting).size(), 3u);
  EXPECT_EQ(spans_of(recorder, SpanKind::compute).size(), 3u);
}

}  // namespace
}  // namespace trireme
