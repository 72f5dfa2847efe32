#include "trireme/lab/bench/job_trace.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "tests/support/temporary_folder.hpp"
#include "trireme/comm/collectives.hpp"
#include "trireme/comm/local/run_local.hpp"
#include "trireme/report/trace_file.hpp"

namespace trireme::lab {
namespace {

using perf::ScopedSpan;

// Ranks leave a span each while all are between two barriers.
void leave_spans(JobTrace& trace, comm::Communicator& communicator) {
  perf::Track& track = trace.recorder().track(perf::Recorder::kMainTrack);
  const std::int32_t label = trace.recorder().label({.name = "together", .kind = perf::SpanKind::step});
  trace.recorder().set_recording(true);
  comm::barrier(communicator);
  const ScopedSpan span(&track, label, communicator.rank() + 1);
  comm::barrier(communicator);
}

TEST(JobTrace, HasAllRanksOnOneTimeLine) {
  const testkit::TemporaryFolder folder;
  const std::string path = folder / "trace.json";
  comm::run_local({.size = 3, .ranks_per_node = 1}, [&](comm::Communicator& communicator) {
    JobTrace trace(communicator, 2, 10);
    leave_spans(trace, communicator);
    const std::string line = trace.write(path);
    EXPECT_EQ(line.empty(), communicator.rank() > 0) << line;
  });
  const report::TraceFile file = report::read_trace(path);
  ASSERT_EQ(file.ranks.size(), 3u);
  EXPECT_EQ(file.ranks[0].name, "rank 0 on node0");
  EXPECT_EQ(file.ranks[1].name, "rank 1 on node1");
  EXPECT_EQ(file.ranks[2].name, "ps 0 on node2");
  EXPECT_TRUE(file.ranks[2].is_server);
  double first = 1, latest_begin = 0, first_end = 1e9, error = 0;
  for (const report::TraceRank& rank : file.ranks) {
    ASSERT_EQ(rank.threads.size(), 1u);
    ASSERT_EQ(rank.threads[0].spans.size(), 1u);
    const report::TraceSpan& span = rank.threads[0].spans[0];
    EXPECT_EQ(span.number, rank.rank + 1);
    first = std::min(first, span.begin);
    latest_begin = std::max(latest_begin, span.begin);
    first_end = std::min(first_end, span.end);
    error = std::max(error, rank.clock_error);
  }
  EXPECT_EQ(first, 0);
  // Nobody left before all were there, as far as the clocks of two ranks are known.
  EXPECT_LE(latest_begin, first_end + 2 * error + 1e-8);
}

TEST(JobTrace, OfOneProcessSaysWhatFoundNoRoom) {
  const testkit::TemporaryFolder folder;
  const std::string path = folder / "trace.json";
  const auto alone = comm::make_single();
  JobTrace trace(*alone, 1, 1);
  perf::Track& track = trace.recorder().track("small", 5);
  const std::int32_t label = trace.recorder().label({.name = "work"});
  trace.recorder().set_recording(true);
  for (int i = 0; i < 8; ++i) const ScopedSpan span(&track, label);
  EXPECT_NE(trace.write(path).find("3 spans did not fit"), std::string::npos);
  const report::TraceFile file = report::read_trace(path);
  EXPECT_EQ(file.ranks.at(0).dropped, 3);
  EXPECT_EQ(file.ranks.at(0).threads.at(0).spans.size(), 5u);
}

}  // namespace
}  // namespace trireme::lab
