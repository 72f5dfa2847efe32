// `--trace` of real jobs: one file with all ranks, whose spans nest and whose clocks agree.
#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "tests/distributed/bench_record.hpp"
#include "tests/distributed/launched_job.hpp"
#include "tests/distributed/server_job.hpp"
#include "tests/support/idx_files.hpp"
#include "tests/support/temporary_folder.hpp"
#include "trireme/comm/world.hpp"
#include "trireme/report/trace_analysis.hpp"
#include "trireme/train/pipeline_config.hpp"

namespace trireme::testkit {
namespace {

using namespace std::chrono_literals;
using perf::SpanKind;
using report::TraceFile;
using report::TraceRank;
using report::TraceSpan;
using report::TraceThread;

constexpr double kRounding = 2e-9;  // of times in the file

bool has_mpi() { return comm::has_transport("MPI"); }

void expect_success(LaunchedJob& job) { EXPECT_EQ(job.exit_code(100s), 0) << job.err() << job.out(); }

// On a thread, a span that begins in another one ends in it too.
void expect_nested(const TraceThread& thread, const std::string& where) {
  std::vector<const TraceSpan*> open;
  for (const TraceSpan& span : thread.spans) {
    while (!open.empty() && open.back()->end <= span.begin + kRounding) open.pop_back();
    if (!open.empty()) {
      EXPECT_LE(span.end, open.back()->end + kRounding) << where << ": " << span.name << " in " << open.back()->name;
    }
    open.push_back(&span);
  }
}

std::map<SpanKind, int> kinds_of(const TraceRank& rank) {
  std::map<SpanKind, int> kinds;
  for (const TraceThread& thread : rank.threads) {
    expect_nested(thread, rank.name + ", " + thread.name);
    for (const TraceSpan& span : thread.spans) ++kinds[span.kind];
  }
  return kinds;
}

std::vector<const TraceSpan*> spans_of(const TraceRank& rank, SpanKind kind) {
  std::vector<const TraceSpan*> spans;
  for (const TraceThread& thread : rank.threads) {
    for (const TraceSpan& span : thread.spans) {
      if (span.kind == kind) spans.push_back(&span);
    }
  }
  std::stable_sort(spans.begin(), spans.end(),
                   [](const TraceSpan* a, const TraceSpan* b) { return a->begin < b->begin; });
  return spans;
}

// What ranks do together they do at the same time: the n-th of one has a moment in common with the n-th of the other.
void expect_together(const TraceRank& a, const TraceRank& b, std::size_t count) {
  const auto ours = spans_of(a, SpanKind::communication), theirs = spans_of(b, SpanKind::communication);
  ASSERT_EQ(ours.size(), count);
  ASSERT_EQ(theirs.size(), count);
  const double error = a.clock_error + b.clock_error;
  for (std::size_t i = 0; i < count; ++i) {
    EXPECT_EQ(ours[i]->name, theirs[i]->name);
    EXPECT_LT(ours[i]->begin, theirs[i]->end + error);
    EXPECT_LT(theirs[i]->begin, ours[i]->end + error);
    EXPECT_GT(ours[i]->bytes, 0);
    EXPECT_EQ(ours[i]->bytes, ours[i]->link_bytes);  // of two ranks
    EXPECT_EQ(ours[i]->peers, "ranks 0-1");
  }
}

TEST(Trace, OfTwoWorkersIsOneFile) {
  if (!has_mpi()) GTEST_SKIP() << "needs MPI";
  const TemporaryFolder folder;
  const std::string path = folder / "trace.json", record = folder / "record.json";
  LaunchedJob job({"--workers",
                   "2",
                   "--oversubscribe",
                   "--",
                   "bench",
                   "--model",
                   "mnist",
                   "--batch-size",
                   "4",
                   "--autotune",
                   "off",
                   "--num-warmup-batches",
                   "1",
                   "--num-batches",
                   "8",
                   "--bucket-mb",
                   "0.5",
                   "--trace",
                   path,
                   "--trace-steps",
                   "5",
                   "--record",
                   record});
  expect_success(job);
  EXPECT_NE(job.out().find("trace: " + path), std::string::npos) << job.out();
  const TraceFile trace = report::read_trace(path);
  const nlohmann::json written = read_record(record);
  ASSERT_EQ(trace.ranks.size(), 2u);
  const auto buckets = static_cast<int>(spans_of(trace.ranks[0], SpanKind::communication).size()) / 5;
  EXPECT_GT(buckets, 1);
  const report::TraceAnalysis analysis = analyze(trace);
  for (std::size_t rank = 0; rank < 2; ++rank) {
    const auto kinds = kinds_of(trace.ranks[rank]);
    EXPECT_EQ(trace.ranks[rank].dropped, 0);
    EXPECT_EQ(kinds.at(SpanKind::step), 5);
    EXPECT_EQ(kinds.at(SpanKind::communication), 5 * buckets);
    EXPECT_EQ(kinds.at(SpanKind::optimizer), 5 * buckets);
    EXPECT_EQ(kinds.at(SpanKind::compute) % 5, 0);
    // A span lies inside the step that the record has timed.
    const auto steps = spans_of(trace.ranks[rank], SpanKind::step);
    for (std::size_t i = 0; i < steps.size(); ++i) {
      EXPECT_EQ(steps[i]->number, static_cast<std::int64_t>(i) + 1);
      EXPECT_LE(steps[i]->seconds(), written.at("steps")[rank][0][i].get<double>() + kRounding);
    }
    const report::TracedRank& time = analysis.ranks[rank];
    EXPECT_GT(time.compute, 0);
    EXPECT_LE(time.compute, time.step);
    EXPECT_LE(time.exposed, time.communication);
    EXPECT_LE(time.compute + time.optimizer + time.exposed + time.idle, time.step * (1 + 1e-6));
  }
  expect_together(trace.ranks[0], trace.ranks[1], 5 * buckets);
  EXPECT_EQ(analysis.buckets.size(), static_cast<std::size_t>(buckets));
}

// The line of a stage has every task, and bubbles between them; its messages are those of the record.
TEST(Trace, OfAPipelineShowsTasksMessagesAndBubbles) {
  if (!has_mpi()) GTEST_SKIP() << "needs MPI";
  constexpr int kSteps = 3, kMicroBatches = 4;
  const TemporaryFolder folder;
  const std::string path = folder / "trace.json", record = folder / "record.json", plan = folder / "plan.json";
  LaunchedJob job({"--workers",
                   "2",
                   "--oversubscribe",
                   "--",
                   "bench",
                   "--model",
                   "mnist",
                   "--batch-size",
                   "8",
                   "--autotune",
                   "off",
                   "--num-warmup-batches",
                   "1",
                   "--num-batches",
                   std::to_string(kSteps),
                   "--parallel",
                   "pipeline:2",
                   "--micro-batches",
                   std::to_string(kMicroBatches),
                   "--schedule",
                   "zb-h1",
                   "--trace",
                   path,
                   "--trace-steps",
                   std::to_string(kSteps),
                   "--record",
                   record});
  expect_success(job);
  EXPECT_NE(job.out().find("stages:      bubbles "), std::string::npos) << job.out();
  const TraceFile trace = report::read_trace(path);
  ASSERT_EQ(trace.ranks.size(), 2u);
  std::int64_t sent = 0, received = 0;
  for (const TraceRank& rank : trace.ranks) {
    const std::string name = "stage " + std::to_string(rank.rank);
    const auto kinds = kinds_of(rank);
    EXPECT_GE(kinds.at(SpanKind::bubble), kSteps);  // at least until the other stage's end
    const auto line = std::ranges::find(rank.threads, name, &TraceThread::name);
    ASSERT_NE(line, rank.threads.end()) << name;
    std::map<std::string, int> spans;
    double end = 0;
    for (const TraceSpan& span : line->spans) {
      EXPECT_GE(span.begin, end - kRounding) << span.name;
      end = span.end;
      ++spans[span.name];
      EXPECT_EQ(span.detail.empty(), span.kind != SpanKind::bubble) << span.name;
    }
    for (int m = 0; m < kMicroBatches; ++m) {
      for (const char* task : {"forward ", "backward ", "weights "})
        EXPECT_GE(spans[task + std::to_string(m)], kSteps) << task << m << " of " << name;
    }
    EXPECT_GE(spans["update"], kSteps);
    for (const TraceSpan* span : spans_of(rank, SpanKind::transfer)) {
      (span->name.starts_with("send ") ? sent : received) += span->bytes;
      EXPECT_EQ(span->peers, "rank " + std::to_string(1 - rank.rank));
    }
  }
  const report::TraceAnalysis analysis = analyze(trace);
  ASSERT_EQ(analysis.stages.size(), 2u);
  for (const report::StageTime& stage : analysis.stages) {
    EXPECT_GT(stage.bubble, 0);
    EXPECT_LE(stage.forward + stage.backward + stage.weights + stage.reduce + stage.update + stage.bubble,
              stage.step * (1 + 1e-6));
  }
  for (const report::TracedRank& time : analysis.ranks)
    EXPECT_NEAR(time.compute + time.optimizer + time.input + time.exposed + time.bubble + time.idle, time.step,
                1e-6 * time.step);

  const nlohmann::json pipeline = read_record(record).at("pipeline");
  EXPECT_EQ(pipeline.at("schedule"), "zb-h1");
  EXPECT_EQ(pipeline.at("micro_batches"), kMicroBatches);
  ASSERT_EQ(pipeline.at("cuts").size(), 1u);
  EXPECT_EQ(sent, kSteps * pipeline["cuts"][0].at("bytes_per_step").get<std::int64_t>());
  EXPECT_EQ(received, sent);
  ASSERT_EQ(pipeline.at("bubble_share").size(), 2u);
  for (const double share : pipeline["bubble_share"]) {
    EXPECT_GT(share, 0);
    EXPECT_LT(share, 1);
  }
  std::ofstream(plan) << pipeline;  // is a file for --parallel
  const train::PipelineConfig again = train::resolve_pipeline({.parallel = plan}, 2);
  EXPECT_EQ(again.replicas, (std::vector{1, 1}));
  EXPECT_EQ(again.micro_batches, kMicroBatches);
  EXPECT_EQ(again.kind, PipelineKind::zero_bubble);
  EXPECT_EQ(again.cuts, std::vector{pipeline["cuts"][0].at("at").get<std::string>()});
}

TEST(Trace, OfAPipelineShowsThatOnlyItsEndsReadInput) {
  if (!has_mpi()) GTEST_SKIP() << "needs MPI";
  const TemporaryFolder folder;
  write_idx(folder.path(), 100);
  const std::string path = folder / "trace.json";
  LaunchedJob job({"--workers",
                   "3",
                   "--oversubscribe",
                   "--",
                   "bench",
                   "--model",
                   "mnist",
                   "--batch-size",
                   "4",
                   "--autotune",
                   "off",
                   "--parallel",
                   "pipeline:3",
                   "--data-dir",
                   folder.path().string(),
                   "--num-warmup-batches",
                   "1",
                   "--num-batches",
                   "3",
                   "--trace",
                   path});
  expect_success(job);
  const TraceFile trace = report::read_trace(path);
  ASSERT_EQ(trace.ranks.size(), 3u);
  for (const TraceRank& rank : trace.ranks)
    EXPECT_EQ(kinds_of(rank).contains(SpanKind::decode), rank.rank != 1) << rank.rank;
}

// The groups of cores wait for each other before updates and in the middle of batch norm.
TEST(Trace, OfASplitBatchShowsHowGroupsWaitForEachOther) {
  const TemporaryFolder folder;
  const std::string path = folder / "trace.json";
  LaunchedJob job({"--workers",
                   "1",
                   "--oversubscribe",
                   "--",
                   "bench",
                   "--model",
                   "resnet20",
                   "--batch-size",
                   "8",
                   "--num-intra-threads",
                   "2",
                   "--no-bind",
                   "--batch-split",
                   "2",
                   "--autotune",
                   "off",
                   "--num-warmup-batches",
                   "1",
                   "--num-batches",
                   "3",
                   "--trace",
                   path,
                   "--trace-steps",
                   "3"});
  expect_success(job);
  const TraceFile trace = report::read_trace(path);
  ASSERT_EQ(trace.ranks.size(), 1u);
  const TraceRank& rank = trace.ranks[0];
  const auto kinds = kinds_of(rank);
  EXPECT_GT(kinds.at(SpanKind::barrier), 0);
  int in_operations = 0;
  for (const TraceThread& thread : rank.threads) {
    const report::TraceSpan* operation = nullptr;
    for (const TraceSpan& span : thread.spans) {
      if (span.kind == SpanKind::compute) operation = &span;
      if (span.kind == SpanKind::barrier && operation != nullptr && span.begin < operation->end) ++in_operations;
    }
  }
  EXPECT_GT(in_operations, 0);
  const report::TraceAnalysis analysis = analyze(trace);
  const report::TracedRank& time = analysis.ranks.at(0);
  ASSERT_EQ(time.groups_wait.size(), 2u);
  for (const double wait : time.groups_wait) EXPECT_GT(wait, 0);
  EXPECT_NEAR(time.compute + time.optimizer + time.input + time.exposed + time.mean_groups_wait() + time.idle,
              time.step, 1e-6 * time.step);
  EXPECT_NE(to_text(analysis).find("groups wait"), std::string::npos);
}

TEST(Trace, HasTheUpdatesOfParameterServers) {
  if (!has_protocol("grpc")) GTEST_SKIP() << "needs gRPC";
  const TemporaryFolder folder;
  const std::string path = folder / "trace.json";
  LaunchedJob job(launch_words({.servers = 2, .options = {"--trace_file", path, "--trace-steps", "6"}}));
  expect_success(job);
  const TraceFile trace = report::read_trace(path);
  ASSERT_EQ(trace.ranks.size(), 4u);
  for (std::size_t rank = 0; rank < 2; ++rank) {
    const auto kinds = kinds_of(trace.ranks[rank]);
    EXPECT_EQ(kinds.at(SpanKind::step), 6);
    EXPECT_FALSE(kinds.contains(SpanKind::optimizer));
    const auto pushes = spans_of(trace.ranks[rank], SpanKind::communication);
    ASSERT_FALSE(pushes.empty());
    EXPECT_EQ(pushes.size() % 6, 0u);
    for (const TraceSpan* push : pushes) {
      EXPECT_EQ(push->peers.rfind("ps ", 0), 0u) << push->peers;
      EXPECT_EQ(push->link_bytes, 2 * push->bytes);
    }
  }
  for (std::size_t rank = 2; rank < 4; ++rank) {
    EXPECT_TRUE(trace.ranks[rank].is_server);
    EXPECT_GE(kinds_of(trace.ranks[rank]).at(SpanKind::optimizer), 6);
  }
  EXPECT_EQ(analyze(trace).servers.size(), 2u);
}

TEST(Trace, OfTrainingHasItsInput) {
  if (!has_mpi()) GTEST_SKIP() << "needs MPI";
  const TemporaryFolder folder;
  write_idx(folder.path(), 100);
  const std::string path = folder / "trace.json";
  LaunchedJob job({"--workers",
                   "2",
                   "--oversubscribe",
                   "--",
                   "train",
                   "--model",
                   "mnist",
                   "--batch-size",
                   "5",
                   "--autotune",
                   "off",
                   "--data-dir",
                   folder.path().string(),
                   "--epochs",
                   "1",
                   "--eval",
                   "none",
                   "--trace",
                   path,
                   "--trace-steps",
                   "3"});
  expect_success(job);
  const TraceFile trace = report::read_trace(path);
  ASSERT_EQ(trace.ranks.size(), 2u);
  for (const TraceRank& rank : trace.ranks) {
    const auto kinds = kinds_of(rank);
    EXPECT_EQ(kinds.at(SpanKind::step), 3);
    EXPECT_EQ(kinds.at(SpanKind::input), 6);  // waiting for images, putting them in place
    EXPECT_GT(kinds.at(SpanKind::decode), 0);
  }
}

}  // namespace
}  // namespace trireme::testkit
