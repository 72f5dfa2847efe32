// Traces made by hand, whose unions, overlaps and paths are known.
#include "trireme/report/trace_analysis.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/temporary_folder.hpp"
#include "trireme/base/error.hpp"
#include "trireme/plan/pipeline_order.hpp"
#include "trireme/report/trace_writer.hpp"

namespace trireme::report {
namespace {

constexpr double kMs = 1e-3;

// Times are milliseconds.
class HandMadeTrace {
 public:
  explicit HandMadeTrace(int workers, int servers = 0) {
    json_["traceEvents"] = Json::array();
    Json ranks = Json::array();
    for (int rank = 0; rank < workers + servers; ++rank) {
      ranks.push_back({{"rank", rank},
                       {"name", "rank " + std::to_string(rank)},
                       {"lost", false},
                       {"dropped_spans", 0},
                       {"clock_error_us", rank == 0 ? 0 : 10}});
    }
    json_["otherData"] = {
        {"schema", kTraceSchema}, {"command", {"trireme", "bench"}}, {"workers", workers}, {"ranks", ranks}};
  }

  void add(int rank, int thread, const std::string& kind, double begin, double end, const std::string& name = "x",
           const Json& arguments = Json::object()) {
    json_["traceEvents"].push_back({{"name", name},
                                    {"cat", kind},
                                    {"ph", "X"},
                                    {"ts", 1e3 * begin},
                                    {"dur", 1e3 * (end - begin)},
                                    {"pid", rank},
                                    {"tid", thread},
                                    {"args", arguments}});
  }
  void name_thread(int rank, int thread, const std::string& name) {
    json_["traceEvents"].push_back(
        {{"ph", "M"}, {"name", "thread_name"}, {"pid", rank}, {"tid", thread}, {"args", {{"name", name}}}});
  }
  void add_step(int rank, double begin, double end, int number = 1) {
    add(rank, 0, "step", begin, end, "step", {{"step", number}});
  }
  void add_bucket(int rank, int bucket, double begin, double end, int bytes = 1000) {
    add(rank, 1, "communication", begin, end, "bucket " + std::to_string(bucket),
        {{"bucket", bucket}, {"bytes", bytes}, {"link_bytes", 2 * bytes}, {"peers", "ranks 0-1"}});
  }
  void add_wait(int rank, int bucket, double begin, double end) {
    add(rank, 0, "waiting", begin, end, "wait for bucket", {{"bucket", bucket}});
  }

  Json& json() { return json_; }
  TraceAnalysis analysis() const { return analyze(parse_trace(json_, "hand-made")); }

 private:
  Json json_;
};

TEST(TraceAnalysis, OneRankByUnions) {
  HandMadeTrace trace(1);
  trace.add_step(0, 0, 10, 1);
  trace.add_step(0, 20, 30, 2);
  trace.add(0, 0, "input", 0, 1);
  trace.add(0, 0, "compute", 1, 5, "a", {{"operation", "convolution"}});
  trace.add(0, 2, "compute", 3, 7, "a", {{"operation", "convolution"}});  // another group of cores at the same time
  trace.add(0, 0, "optimizer", 8, 9, "update");
  trace.add(0, 0, "compute", 15, 22, "b");  // begins between steps
  trace.add(0, 3, "decode", 0, 30);
  const TraceAnalysis analysis = trace.analysis();
  ASSERT_EQ(analysis.ranks.size(), 1u);
  const TracedRank& rank = analysis.ranks[0];
  EXPECT_EQ(rank.steps, 2);
  EXPECT_NEAR(rank.step, 10 * kMs, 1e-9);
  EXPECT_NEAR(rank.compute, (6 + 2) / 2.0 * kMs, 1e-9);
  EXPECT_NEAR(rank.optimizer, 0.5 * kMs, 1e-9);
  EXPECT_NEAR(rank.input, 0.5 * kMs, 1e-9);
  EXPECT_NEAR(rank.idle, (20 - 6 - 2 - 1 - 1) / 2.0 * kMs, 1e-9);
  EXPECT_EQ(rank.communication, 0);
  ASSERT_EQ(analysis.operations.size(), 3u);
  EXPECT_EQ(analysis.operations[0].name, "a");
  EXPECT_EQ(analysis.operations[0].operation, "convolution");
  EXPECT_NEAR(analysis.operations[0].seconds, 4 * kMs, 1e-9);
  EXPECT_NEAR(analysis.operations[0].share, 8.0 / 16, 1e-9);
  EXPECT_EQ(analysis.operations[1].name, "b");
}

// The first group waits inside an operation and before the update, the second at the begin and the end.
HandMadeTrace two_groups() {
  HandMadeTrace trace(1);
  trace.name_thread(0, 0, "main");
  trace.name_thread(0, 2, "group of cores 1");
  trace.add_step(0, 0, 20);
  trace.add(0, 0, "input", 0, 2);
  trace.add(0, 0, "compute", 2, 10, "norm");
  trace.add(0, 0, "barrier", 4, 9);
  trace.add(0, 0, "barrier", 10, 12);
  trace.add(0, 0, "optimizer", 12, 15, "update");
  trace.add(0, 2, "compute", 3, 12, "norm");
  trace.add(0, 2, "barrier", 8.9, 9);
  trace.add(0, 2, "optimizer", 12, 13, "update");
  return trace;
}

TEST(TraceAnalysis, GroupsThatWaitForEachOtherAreSeenAndAllAddsUp) {
  const TraceAnalysis analysis = two_groups().analysis();
  const TracedRank& rank = analysis.ranks[0];
  ASSERT_EQ(rank.groups_wait.size(), 2u);
  EXPECT_NEAR(rank.groups_wait[0], (5 + 2) * kMs, 1e-9);
  EXPECT_NEAR(rank.groups_wait[1], (1 + 0.1 + 2) * kMs, 1e-9) << "while the other one begins, in it, and at the end";
  EXPECT_NEAR(rank.compute, (3 + 8.9) / 2 * kMs, 1e-9) << "waiting inside an operation is not computing";
  EXPECT_NEAR(rank.optimizer, (3 + 1) / 2.0 * kMs, 1e-9);
  EXPECT_NEAR(rank.input, 2 * kMs, 1e-9);
  EXPECT_NEAR(rank.idle, 5 * kMs, 1e-9);
  EXPECT_NEAR(rank.compute + rank.optimizer + rank.input + rank.exposed + rank.mean_groups_wait() + rank.idle,
              rank.step, 1e-9);
  EXPECT_NEAR(analysis.operations[0].seconds, (3 + 8.9) * kMs, 1e-9) << "of both groups, without waiting";
  const std::string text = to_text(analysis);
  EXPECT_NE(text.find("groups wait"), std::string::npos) << text;
  EXPECT_NE(text.find("the groups wait 7.00 and 3.10 ms for each other"), std::string::npos) << text;
}

TEST(TraceAnalysis, ThePathHasTheWaitInsideAnOperation) {
  HandMadeTrace trace(1);
  trace.name_thread(0, 2, "group of cores 1");
  trace.add_step(0, 0, 20);
  trace.add(0, 0, "compute", 0, 20, "norm");
  trace.add(0, 0, "barrier", 4, 9);
  trace.add(0, 2, "compute", 1, 19, "norm");
  const CriticalPath path = trace.analysis().slowest_step;
  ASSERT_EQ(path.pieces.size(), 3u);
  EXPECT_EQ(path.pieces[0].kind, "compute");
  EXPECT_NEAR(path.pieces[0].seconds, 4 * kMs, 1e-9);
  EXPECT_EQ(path.pieces[1].kind, "barrier");
  EXPECT_NEAR(path.pieces[1].seconds, 5 * kMs, 1e-9);
  EXPECT_NEAR(path.pieces[2].seconds, 11 * kMs, 1e-9);
}

TEST(TraceAnalysis, OneGroupHasNoColumnForGroups) {
  HandMadeTrace trace(1);
  trace.add_step(0, 0, 10);
  trace.add(0, 0, "compute", 0, 4);
  EXPECT_EQ(to_text(trace.analysis()).find("groups wait"), std::string::npos);
}

// Rank 1 computes 2 ms longer, so rank 0 waits for it in the bucket.
HandMadeTrace two_ranks() {
  HandMadeTrace trace(2);
  trace.add_step(0, 0, 12);
  trace.add(0, 0, "compute", 0, 4, "forward");
  trace.add(0, 0, "compute", 4, 6, "backward");
  trace.add_wait(0, 2, 6, 11);
  trace.add(0, 0, "optimizer", 11, 12, "update");
  trace.add_bucket(0, 1, 5, 6, 4000);
  trace.add_bucket(0, 2, 6, 11);
  trace.add_step(1, 0, 12);
  trace.add(1, 0, "compute", 0, 6, "forward");
  trace.add(1, 0, "compute", 6, 8, "backward");
  trace.add_wait(1, 2, 8, 11);
  trace.add(1, 0, "optimizer", 11, 11.5, "update");
  trace.add_bucket(1, 1, 5.5, 6, 4000);
  trace.add_bucket(1, 2, 8, 11);
  return trace;
}

TEST(TraceAnalysis, CommunicationThatIsHiddenAndThatIsNot) {
  const TraceAnalysis analysis = two_ranks().analysis();
  ASSERT_EQ(analysis.ranks.size(), 2u);
  const TracedRank &first = analysis.ranks[0], &second = analysis.ranks[1];
  EXPECT_NEAR(first.communication, 6 * kMs, 1e-9);
  EXPECT_NEAR(first.exposed, 5 * kMs, 1e-9);
  EXPECT_NEAR(first.overlap, 1 - 5.0 / 6, 1e-9);
  EXPECT_NEAR(first.late_others, 2 * kMs, 1e-9);  // from 6, when it begins with bucket 2, until rank 1 does at 8
  EXPECT_NEAR(first.idle, 0, 1e-9);
  EXPECT_NEAR(second.communication, 3.5 * kMs, 1e-9);
  EXPECT_NEAR(second.exposed, 3 * kMs, 1e-9);
  EXPECT_NEAR(second.late_others, 0, 1e-9);
  EXPECT_NEAR(second.idle, 0.5 * kMs, 1e-9);
}

// A stage of two workers, of which the second waits twice as long, and one of one.
TEST(TraceAnalysis, BubblesOfStagesAreCountedAndAllAddsUp) {
  HandMadeTrace trace(3);
  for (const int rank : {0, 1, 2}) {
    trace.name_thread(rank, 2, rank < 2 ? "stage 0" : "stage 1");
    trace.add_step(rank, 0, 10);
    const double bubble = rank == 0 ? 2 : 4;
    trace.add(rank, 0, "compute", 0, 9 - bubble, "convolution");
    trace.add(rank, 2, "task", 0, 3, "forward 0");
    trace.add(rank, 2, "task", 3, 9 - bubble, "backward 0");
    trace.add(rank, 2, "bubble", 9 - bubble, 9, "bubble", {{"waits for", "conv1 of micro-batch 1"}});
    trace.add(rank, 0, "waiting", 9 - bubble, 9, "wait for another stage");
    trace.add(rank, 2, "task", 9, 10, "update");
    trace.add(rank, 0, "optimizer", 9, 10, "update");
    trace.add(rank, 3, "transfer", 0, 9, "receive conv1");
  }
  const TraceAnalysis analysis = trace.analysis();
  for (const TracedRank& rank : analysis.ranks) {
    EXPECT_NEAR(rank.bubble, (rank.rank == 0 ? 2 : 4) * kMs, 1e-9);
    EXPECT_NEAR(rank.compute + rank.optimizer + rank.input + rank.exposed + rank.bubble + rank.idle, rank.step, 1e-9);
  }
  ASSERT_EQ(analysis.stages.size(), 2u);
  const StageTime &first = analysis.stages[0], &second = analysis.stages[1];
  EXPECT_EQ(first.workers, 2);
  EXPECT_NEAR(first.bubble_share(), 0.3, 1e-9);
  EXPECT_NEAR(second.bubble_share(), 0.4, 1e-9);
  EXPECT_NEAR(second.forward, 3 * kMs, 1e-9);
  EXPECT_NEAR(second.backward, 2 * kMs, 1e-9);
  EXPECT_NEAR(second.update, 1 * kMs, 1e-9);
  const std::string text = to_text(analysis);
  EXPECT_NE(text.find("bubble share"), std::string::npos) << text;
  EXPECT_NE(text.find("30.0 %"), std::string::npos) << text;
  EXPECT_EQ(to_text(two_ranks().analysis()).find("bubble"), std::string::npos);
}

// A step of stages with equal layers, in virtual time, as a run would trace it: the bubbles of the formulas.
TEST(TraceAnalysis, BubblesOfEqualStagesAreThoseOfTheFormulas) {
  const auto traced_share = [](PipelineKind kind, int stages, int micro_batches) {
    const PipelineOrder order = make_pipeline_order(kind, {.stages = stages, .micro_batches = micro_batches});
    const std::vector<double> each(static_cast<std::size_t>(stages), 1);
    const PipelineTimes times = predict(order, {.forward = each, .backward = each, .weights = each});
    HandMadeTrace trace(stages);
    for (int stage = 0; stage < stages; ++stage) {
      trace.name_thread(stage, 2, "stage " + std::to_string(stage));
      trace.add_step(stage, 0, times.total);
      double end = 0;
      const auto add_bubble = [&](double until) {
        if (until > end) trace.add(stage, 2, "bubble", end, until, "bubble", {{"waits for", "another stage"}});
      };
      const auto index = static_cast<std::size_t>(stage);
      for (std::size_t i = 0; i < order.tasks[index].size(); ++i) {
        const PipelineOrder::Task& task = order.tasks[index][i];
        const PipelineTimes::Span& span = times.tasks[index][i];
        add_bubble(span.start);
        trace.add(stage, 2, "task", span.start, span.end,
                  std::string(to_string(task.kind)) + " " + std::to_string(task.micro_batch));
        end = span.end;
      }
      add_bubble(times.total);
    }
    const TraceAnalysis analysis = trace.analysis();
    EXPECT_EQ(std::ssize(analysis.stages), stages);
    double sum = 0;
    for (const StageTime& stage : analysis.stages) {
      EXPECT_NEAR(stage.forward + stage.backward + stage.weights + stage.bubble, stage.step, 1e-6);
      sum += stage.bubble_share();
    }
    return sum / stages;
  };
  for (const int stages : {2, 4}) {
    for (const int micro_batches : {4, 16}) {
      const double formula = (stages - 1.0) / (micro_batches + stages - 1.0);
      EXPECT_NEAR(traced_share(PipelineKind::one_forward, stages, micro_batches), formula, 0.05 * formula);
      EXPECT_LT(traced_share(PipelineKind::zero_bubble, stages, micro_batches), 0.95 * formula);
    }
  }
}

// Two stages of two workers each: bucket 1 of a stage is not that of the other.
TEST(TraceAnalysis, BucketsBelongToStages) {
  HandMadeTrace trace(4);
  for (const int rank : {0, 1, 2, 3}) {
    trace.name_thread(rank, 2, rank < 2 ? "stage 0" : "stage 1");
    trace.add_step(rank, 0, 10);
    trace.add(rank, 2, "task", 0, 10, "forward 0");
  }
  trace.add_bucket(0, 1, 1, 3);
  trace.add_bucket(1, 1, 2, 3);  // the last of its stage
  trace.add_bucket(2, 1, 2.5, 6);
  trace.add_bucket(3, 1, 2, 6);
  const TraceAnalysis analysis = trace.analysis();
  ASSERT_EQ(analysis.buckets.size(), 2u);
  EXPECT_NEAR(analysis.buckets[0].seconds, 1 * kMs, 1e-9);
  EXPECT_NEAR(analysis.buckets[1].seconds, 3.5 * kMs, 1e-9);
}

TEST(TraceAnalysis, TheLateRankIsNamed) {
  const TraceAnalysis analysis = two_ranks().analysis();
  // Their own time: 12 - 5 and 12 - 3.
  EXPECT_NEAR(analysis.ranks[1].straggling, 9.0 / 7, 1e-9);
  EXPECT_NEAR(analysis.ranks[0].straggling, 7.0 / 9, 1e-9);
  EXPECT_EQ(analysis.ranks[1].came_last, 1.0);
  EXPECT_EQ(analysis.ranks[0].came_last, 0.0);
  const std::string text = to_text(analysis);
  EXPECT_NE(text.find("rank 1 takes 1.29 times"), std::string::npos) << text;
  EXPECT_EQ(text.find("rank 0 takes"), std::string::npos) << text;
}

TEST(TraceAnalysis, NobodyIsLastWithinTheErrorOfClocks) {
  HandMadeTrace trace = two_ranks();
  trace.json()["otherData"]["ranks"][1]["clock_error_us"] = 1000;  // more than the 0.5 ms of bucket 1
  EXPECT_EQ(trace.analysis().ranks[1].came_last, 0.5);
}

TEST(TraceAnalysis, BucketsAreAsFastAsOnTheRankThatCameLast) {
  const TraceAnalysis analysis = two_ranks().analysis();
  ASSERT_EQ(analysis.buckets.size(), 2u);
  EXPECT_NEAR(analysis.buckets[0].seconds, 0.5 * kMs, 1e-9);
  EXPECT_NEAR(analysis.buckets[0].bus_bytes_per_second, 8000 / 0.5e-3, 1);
  EXPECT_EQ(analysis.buckets[0].bytes, 4000);
  EXPECT_NEAR(analysis.buckets[1].seconds, 3 * kMs, 1e-9);
  EXPECT_EQ(analysis.buckets[1].peers, "ranks 0-1");
}

TEST(TraceAnalysis, BucketsOfTheLastRankCountThoughItsSpanIsNotTheShortest) {
  HandMadeTrace trace(2);
  for (const int rank : {0, 1}) trace.add_step(rank, 0, 10);
  trace.add_bucket(0, 1, 1, 4);
  trace.add_bucket(1, 1, 2, 6);  // the last to begin, and to end
  const TraceAnalysis analysis = trace.analysis();
  ASSERT_EQ(analysis.buckets.size(), 1u);
  EXPECT_NEAR(analysis.buckets[0].seconds, 4 * kMs, 1e-9);
}

TEST(TraceAnalysis, BucketsInWhichRanksDoNotMeetAreEachOnesOwn) {
  HandMadeTrace trace(2);
  for (const int rank : {0, 1}) trace.add_step(rank, 0, 10);
  trace.add_bucket(0, 1, 1, 2);
  trace.add_bucket(1, 1, 5, 8);
  EXPECT_NEAR(trace.analysis().buckets.at(0).seconds, 2 * kMs, 1e-9) << "the median of 1 and 3";
}

TEST(TraceAnalysis, StepsWithoutLengthAreNone) {
  HandMadeTrace trace(1, 1);
  trace.add_step(0, 5, 5);
  EXPECT_THROW(trace.analysis(), Error);
  trace.add_step(0, 6, 8, 2);
  EXPECT_EQ(trace.analysis().ranks[0].steps, 1);
}

TEST(TraceAnalysis, ThePathGoesThroughTheLateRank) {
  const CriticalPath path = two_ranks().analysis().slowest_step;
  EXPECT_EQ(path.step, 1);
  EXPECT_NEAR(path.seconds, 12 * kMs, 1e-9);
  ASSERT_EQ(path.pieces.size(), 3u);
  EXPECT_EQ(path.pieces[0].rank, 1);
  EXPECT_EQ(path.pieces[0].kind, "compute");
  EXPECT_EQ(path.pieces[0].spans, 2);
  EXPECT_EQ(path.pieces[0].longest, "forward");
  EXPECT_NEAR(path.pieces[0].seconds, 8 * kMs, 1e-9);
  EXPECT_EQ(path.pieces[1].kind, "communication");
  EXPECT_EQ(path.pieces[1].longest, "bucket 2");
  EXPECT_NEAR(path.pieces[1].begin, 8 * kMs, 1e-9);
  EXPECT_NEAR(path.pieces[1].seconds, 3 * kMs, 1e-9);
  EXPECT_EQ(path.pieces[2].rank, 0);
  EXPECT_EQ(path.pieces[2].kind, "optimizer");
}

TEST(TraceAnalysis, ThePathGoesThroughBucketsThatFollowEachOther) {
  HandMadeTrace trace(1);
  trace.add_step(0, 0, 10);
  trace.add(0, 0, "compute", 1, 4, "work");
  trace.add_wait(0, 3, 4, 9);
  trace.add(0, 0, "optimizer", 9, 10, "update");
  trace.add_bucket(0, 1, 2, 5);
  trace.add_bucket(0, 2, 5, 7);
  trace.add_bucket(0, 3, 7, 9);
  const TraceAnalysis analysis = trace.analysis();
  const CriticalPath& path = analysis.slowest_step;
  ASSERT_EQ(path.pieces.size(), 4u);
  EXPECT_EQ(path.pieces[0].kind, "other");
  EXPECT_EQ(path.pieces[1].kind, "compute");
  EXPECT_NEAR(path.pieces[1].seconds, 1 * kMs, 1e-9);
  EXPECT_EQ(path.pieces[2].kind, "communication");
  EXPECT_EQ(path.pieces[2].spans, 3);
  EXPECT_NEAR(path.pieces[2].seconds, 7 * kMs, 1e-9);
  ASSERT_FALSE(analysis.path.empty());
  EXPECT_EQ(analysis.path[0].kind, "communication");
  EXPECT_NEAR(analysis.path[0].share, 0.7, 1e-9);
}

TEST(TraceAnalysis, OnlyBucketsAreCommunication) {
  HandMadeTrace trace(1);
  trace.add_step(0, 0, 10);
  trace.add(0, 0, "compute", 0, 6, "work");
  trace.add_wait(0, 1, 6, 10);
  trace.add(0, 1, "compute", 1, 5, "sum");  // on the thread of the buckets, right before one
  trace.add_bucket(0, 1, 5, 10);
  const CriticalPath path = trace.analysis().slowest_step;
  ASSERT_EQ(path.pieces.size(), 2u);
  EXPECT_EQ(path.pieces[0].kind, "compute");
  EXPECT_EQ(path.pieces[1].kind, "communication");
  EXPECT_NEAR(path.pieces[1].seconds, 5 * kMs, 1e-9);
}

TEST(TraceAnalysis, AWaitThatNothingExplainsIsAWait) {
  HandMadeTrace trace(1);
  trace.add_step(0, 0, 10);
  trace.add(0, 0, "compute", 0, 4, "work");
  trace.add_wait(0, 1, 4, 10);
  const CriticalPath path = trace.analysis().slowest_step;
  ASSERT_EQ(path.pieces.size(), 2u);
  EXPECT_EQ(path.pieces[1].kind, "waiting");
  EXPECT_NEAR(path.pieces[1].seconds, 6 * kMs, 1e-9);
}

// Buckets that overlap, as with parameter servers: the path comes to rank 0 while that waits for a bucket that rank 1
// begins later.
TEST(TraceAnalysis, ThePathComesToAnEndWhereBucketsOverlap) {
  HandMadeTrace trace(2);
  for (const int rank : {0, 1}) trace.add_step(rank, 0, 10);
  trace.add(0, 0, "compute", 0, 2, "work");
  trace.add_wait(0, 1, 2, 6);
  trace.add_bucket(0, 1, 1, 6);
  trace.add_bucket(0, 2, 3.5, 9);
  trace.add(1, 0, "compute", 0, 5, "work");
  trace.add_wait(1, 2, 5, 9);
  trace.add(1, 0, "compute", 9, 10.5, "more");
  trace.add_bucket(1, 1, 4, 6);
  trace.add_bucket(1, 2, 3.4, 9);
  trace.json()["traceEvents"][1]["dur"] = 10500;  // rank 1 ends last
  const CriticalPath path = trace.analysis().slowest_step;
  ASSERT_EQ(path.pieces.size(), 4u);
  EXPECT_EQ(path.pieces[0].rank, 0);
  EXPECT_EQ(path.pieces[0].kind, "compute");
  EXPECT_EQ(path.pieces[1].kind, "waiting");
  EXPECT_NEAR(path.pieces[1].seconds, 1.5 * kMs, 1e-9);
  EXPECT_EQ(path.pieces[2].kind, "communication");
  EXPECT_EQ(path.pieces[3].rank, 1);
}

TEST(TraceAnalysis, ServersAndWhatIsMissingAreSaid) {
  HandMadeTrace trace(1, 1);
  trace.add_step(0, 0, 10);
  trace.add(1, 0, "optimizer", 2, 4, "update");
  trace.add(1, 1, "optimizer", 3, 5, "update");
  trace.json()["otherData"]["ranks"][1]["dropped_spans"] = 12;
  const TraceAnalysis analysis = trace.analysis();
  ASSERT_EQ(analysis.servers.size(), 1u);
  EXPECT_EQ(analysis.servers[0].updates, 2);
  EXPECT_NEAR(analysis.servers[0].busy, 0.3, 1e-9);
  const std::string text = to_text(analysis);
  EXPECT_NE(text.find("12 spans did not fit"), std::string::npos) << text;
}

std::string problem_of(const Json& json) {
  try {
    analyze(parse_trace(json, "broken.json"));
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::bad_input);
    return error.what();
  }
  return "no error";
}

TEST(TraceFile, SaysWhatIsWrongAndWhere) {
  const auto changed = [](const auto& change) {
    Json json = two_ranks().json();
    change(json);
    return problem_of(json);
  };
  const auto expect = [](const std::string& problem, const std::string& part) {
    EXPECT_NE(problem.find(part), std::string::npos) << "expected '" << part << "' in: " << problem;
  };
  expect(problem_of(Json::array()), "broken.json: not a trace of this program");
  expect(problem_of({{"traceEvents", Json::array()}}), "not a trace of this program");
  expect(changed([](Json& json) { json["otherData"]["schema"] = "trireme.trace/9"; }), "trireme.trace/1");
  expect(changed([](Json& json) { json["otherData"].erase("ranks"); }), "\"otherData\" is broken");
  expect(changed([](Json& json) { json.erase("traceEvents"); }), "\"traceEvents\"");
  expect(changed([](Json& json) { json["traceEvents"][2].erase("ts"); }), "event 3 of \"traceEvents\" is broken");
  expect(changed([](Json& json) { json["traceEvents"][2]["ts"] = "soon"; }), "event 3");
  expect(changed([](Json& json) { json["traceEvents"][2]["dur"] = -1; }), "lasts -1");
  expect(changed([](Json& json) { json["traceEvents"][2]["cat"] = "cats"; }), "category 'cats'");
  expect(changed([](Json& json) { json["traceEvents"][2]["pid"] = 7; }), "rank 7");
  expect(
      changed([](Json& json) { json["traceEvents"][5]["args"]["bucket"] = 1'000'000'000'000; }),
      "event 6 of \"traceEvents\" is broken: \"bucket\" is 1000000000000; it must be a whole number from 0 to 100000");
  expect(changed([](Json& json) { json["traceEvents"][5]["args"]["bytes"] = 1e300; }), "\"bytes\" is 1e+300");
  expect(changed([](Json& json) { json["traceEvents"] = Json::array(); }), "no step");
}

TEST(TraceFile, IsReadAsItWasWritten) {
  const trireme::testkit::TemporaryFolder folder;
  const std::string path = folder / "trace.json";
  const std::vector<perf::SpanLabel> labels{{.name = "a \"name\"", .kind = perf::SpanKind::compute, .detail = "relu"},
                                            {.name = "bucket 3",
                                             .kind = perf::SpanKind::communication,
                                             .detail = "update",
                                             .bytes = 10,
                                             .link_bytes = 15,
                                             .peers = "ranks 0-3"}};
  const std::vector<perf::Span> spans{{.begin = 5'000'500, .end = 5'001'750, .label = 1, .number = 3},
                                      {.begin = 1'000'000, .end = 3'000'000, .label = 0}};
  TraceWriter writer(path);
  writer.add_process(0, "rank 0 on alpha");
  writer.add_thread(0, 2, "main");
  writer.add_spans(0, 2, spans, labels, [](std::int64_t time) { return time - 1'000'000; });
  EXPECT_FALSE(std::ifstream(path).is_open());
  writer.finish(HandMadeTrace(1).json()["otherData"]);
  const TraceFile file = read_trace(path);
  ASSERT_EQ(file.ranks.size(), 1u);
  ASSERT_EQ(file.ranks[0].threads.size(), 1u);
  const TraceThread& thread = file.ranks[0].threads[0];
  EXPECT_EQ(thread.name, "main");
  ASSERT_EQ(thread.spans.size(), 2u);
  EXPECT_EQ(thread.spans[0].name, "a \"name\"");
  EXPECT_EQ(thread.spans[0].detail, "relu");
  EXPECT_EQ(thread.spans[0].begin, 0);
  EXPECT_NEAR(thread.spans[0].end, 2e-3, 1e-12);
  EXPECT_EQ(thread.spans[1].number, 3);
  EXPECT_EQ(thread.spans[1].bytes, 10);
  EXPECT_EQ(thread.spans[1].link_bytes, 15);
  EXPECT_EQ(thread.spans[1].peers, "ranks 0-3");
  EXPECT_NEAR(thread.spans[1].seconds(), 1.25e-6, 1e-12);
}

TEST(TraceFile, OnlyRegularFilesAreWritten) {
  const trireme::testkit::TemporaryFolder folder;
  for (const std::string& path : {std::string("/dev/null"), std::string("-"), std::string(), folder.path().string(),
                                  folder / "missing/trace.json"}) {
    EXPECT_THROW(check_trace_path(path), Error) << path;
  }
  check_trace_path(folder / "trace.json");
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(TraceFile, BrokenFilesAreNamed) {
  const trireme::testkit::TemporaryFolder folder;
  const std::string path = folder / "half.json";
  std::ofstream(path) << "{\"traceEvents\":[";
  std::ofstream(folder / "deep.json") << std::string(200'000, '[') + std::string(200'000, ']');
  for (const std::string& each : {path, folder / "deep.json", folder / "none.json", folder.path().string()}) {
    try {
      read_trace(each);
      ADD_FAILURE() << each;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(each), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace trireme::report
