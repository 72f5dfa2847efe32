#include "trireme/perf/recorder.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <thread>
#include <vector>

namespace trireme::perf {
namespace {

TEST(Recorder, KeepsSpansThatBeginWhileItIsOn) {
  Recorder recorder;
  Track& track = recorder.track("main");
  const std::int32_t label = recorder.label({.name = "work", .kind = SpanKind::compute});
  { const ScopedSpan before(&track, label); }
  recorder.set_recording(true);
  const std::int64_t begin = steady_nanoseconds();
  {
    const ScopedSpan outer(&track, label, 1);
    const ScopedSpan inner(&track, label, 2);
    recorder.set_recording(false);
  }
  const std::int64_t end = steady_nanoseconds();
  { const ScopedSpan after(&track, label); }
  const std::vector<Span> spans = track.spans();
  ASSERT_EQ(spans.size(), 2u);
  EXPECT_EQ(spans[0].number, 2);  // the inner one has ended first
  EXPECT_EQ(spans[1].number, 1);
  EXPECT_LE(begin, spans[1].begin);
  EXPECT_LE(spans[1].begin, spans[0].begin);
  EXPECT_LE(spans[0].begin, spans[0].end);
  EXPECT_LE(spans[0].end, spans[1].end);
  EXPECT_LE(spans[1].end, end);
  EXPECT_EQ(recorder.labels().at(spans[0].label).name, "work");
  EXPECT_EQ(track.dropped(), 0);
}

TEST(Recorder, WithoutATrackNothingHappens) {
  const ScopedSpan span(nullptr, 7);
  SUCCEED();
}

TEST(Recorder, CountsWhatFindsNoRoomAndKeepsTheFirst) {
  Recorder recorder(4);
  recorder.set_recording(true);
  Track& track = recorder.track("main");
  Track& larger = recorder.track("larger", 8);
  for (int i = 1; i <= 7; ++i) {
    const ScopedSpan span(&track, 0, i);
    const ScopedSpan other(&larger, 0, i);
  }
  ASSERT_EQ(track.spans().size(), 4u);
  EXPECT_EQ(track.spans().back().number, 4);
  EXPECT_EQ(track.dropped(), 3);
  EXPECT_EQ(larger.spans().size(), 7u);
  EXPECT_EQ(larger.dropped(), 0);
}

TEST(Recorder, FindsATrackByItsName) {
  Recorder recorder;
  Track& main = recorder.track("main");
  for (int i = 0; i < 100; ++i) recorder.track("track " + std::to_string(i), 1);
  EXPECT_EQ(&recorder.track("main"), &main);
  EXPECT_EQ(recorder.tracks().size(), 101u);
}

TEST(Recorder, ThreadsWriteAtTheSameTime) {
  constexpr int kThreads = 4, kSpans = 1000;
  Recorder recorder(kSpans);
  recorder.set_recording(true);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&recorder, i] {
      Track& track = recorder.track(std::to_string(i));
      const std::int32_t label = recorder.label({.name = std::to_string(i)});
      for (int span = 1; span <= kSpans; ++span) const ScopedSpan scoped(&track, label, span);
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_EQ(recorder.tracks().size(), static_cast<std::size_t>(kThreads));
  for (const Track& track : recorder.tracks()) {
    const std::vector<Span> spans = track.spans();
    ASSERT_EQ(spans.size(), static_cast<std::size_t>(kSpans));
    std::int64_t last = 0;
    for (const Span& span : spans) {
      EXPECT_GE(span.begin, last);
      last = span.end;
      EXPECT_EQ(recorder.labels()[span.label].name, track.name());
    }
  }
}

TEST(Recorder, KindsHaveDifferentNames) {
  std::set<std::string_view> names;
  for (int kind = 0; kind < kSpanKinds; ++kind) names.insert(to_string(static_cast<SpanKind>(kind)));
  EXPECT_EQ(names.size(), static_cast<std::size_t>(kSpanKinds));
  EXPECT_FALSE(names.contains(""));
}

}  // namespace
}  // namespace trireme::perf
