// A trace of hosts whose clocks began a quarter of an hour apart: in the file they are one.
#include <algorithm>

#include "tests/hosts/launch_hosts.hpp"
#include "trireme/report/trace_file.hpp"

namespace trireme::testkit {
namespace {

using namespace std::chrono_literals;

// In the order of their beginning.
std::vector<report::TraceSpan> buckets_of(const report::TraceRank& rank) {
  std::vector<report::TraceSpan> buckets;
  for (const report::TraceThread& thread : rank.threads) {
    std::copy_if(thread.spans.begin(), thread.spans.end(), std::back_inserter(buckets),
                 [](const report::TraceSpan& span) { return span.kind == perf::SpanKind::communication; });
  }
  std::sort(buckets.begin(), buckets.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
  return buckets;
}

TEST_F(LaunchHosts, ATraceHasOneClockThoughTheHostsHaveTheirOwn) {
  const auto seconds_on = [&](const std::string& node) {
    return std::stod(cluster_.on(node, "cat /proc/uptime").output);
  };
  const double apart = seconds_on("n1") - seconds_on("n0");
  if (apart < 500) GTEST_SKIP() << "hosts of this kernel share a clock";
  for (const char* protocol : {"grpc", "mpi"}) {
    const std::string path = cluster_.folder() + "/trace.json";
    LaunchedJob job(on_hosts("n0,n1", {"--workers", "2", "--", "bench", "--model", "mnist", "--batch-size", "4",
                                       "--num-batches", "6", "--num-warmup-batches", "1", "--protocol", protocol,
                                       "--trace", path, "--trace-steps", "4"}),
                    {"OMPI_MCA_mpi_yield_when_idle=1"});
    ASSERT_EQ(job.exit_code(60s), 0) << job.err();
    const report::TraceFile trace = report::read_trace(path);
    ASSERT_EQ(trace.ranks.size(), 2u);
    const auto ours = buckets_of(trace.ranks[0]), theirs = buckets_of(trace.ranks[1]);
    ASSERT_EQ(ours.size(), theirs.size());
    ASSERT_FALSE(ours.empty());
    const double error = trace.ranks[0].clock_error + trace.ranks[1].clock_error;
    EXPECT_LT(error, 1) << "of hosts on one machine";
    for (std::size_t i = 0; i < ours.size(); ++i) {  // what ranks do together they do at the same time
      EXPECT_LT(ours[i].begin, theirs[i].end + error) << protocol << ", bucket " << i;
      EXPECT_LT(theirs[i].begin, ours[i].end + error) << protocol << ", bucket " << i;
    }
  }
  expect_nothing_left();
}

}  // namespace
}  // namespace trireme::testkit
