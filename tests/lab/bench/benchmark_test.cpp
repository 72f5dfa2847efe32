#include "trireme/lab/bench/benchmark.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <numeric>
#include <thread>

#include "cli/benchmark_output.hpp"
#include "tests/support/temporary_folder.hpp"
#include "trireme/base/error.hpp"
#include "trireme/comm/local/run_local.hpp"
#include "trireme/comm/network_file.hpp"
#include "trireme/lab/bench/job_figures.hpp"
#include "trireme/lab/bench/profile.hpp"
#include "trireme/record/run_record.hpp"

namespace trireme::lab {
namespace {

// Small enough for the sanitizers; not bound, so that tests in one process do not see each other's binding.
BenchmarkConfig small_config() {
  BenchmarkOptions options;
  options.model = "mnist";
  options.batch_size = 4;
  options.num_batches = 3;
  options.num_warmup_batches = 2;
  options.num_intra_threads = 1;
  options.bind = false;
  return resolve(options);
}

// Whether this machine has the processors.
bool fits(const BenchmarkConfig& config) {
  try {
    perf::plan_threads(config.intra_threads, config.inter_threads, config.options.bind);
  } catch (const Error&) {
    return false;
  }
  return true;
}

struct CountingObserver : BenchmarkObserver {
  void on_start(const BenchmarkSetup&) override { ++starts; }
  void on_warmup_step(const StepEvent& event) override {
    ++warmups;
    if (warmups == stop_after_warmup) stop.request_stop();
    EXPECT_EQ(event.step, warmups);
  }
  void on_step(const StepEvent& event) override {
    ++steps;
    EXPECT_EQ(std::ssize(event.step_seconds), event.step);
    if (steps == stop_after_steps) stop.request_stop();
  }
  void on_end(const BenchmarkSetup&, const BenchmarkResult&) override { ++ends; }

  int starts = 0, warmups = 0, steps = 0, ends = 0;
  int stop_after_warmup = -1, stop_after_steps = -1;
  std::stop_source stop;
};

TEST(Benchmark, MeasuresEveryTimedStepAndReportsEach) {
  Benchmark benchmark(small_config());
  CountingObserver observer;
  benchmark.run(observer);
  const BenchmarkResult& result = benchmark.result();
  ASSERT_EQ(result.step_seconds.size(), 1u);
  ASSERT_EQ(result.step_seconds[0].size(), 3u);
  EXPECT_EQ(result.losses[0].size(), 3u);
  for (const double seconds : result.step_seconds[0]) EXPECT_GT(seconds, 0);
  for (const double loss : result.losses[0]) EXPECT_TRUE(std::isfinite(loss));
  EXPECT_EQ(result.warmup_steps, 2);
  EXPECT_FALSE(result.interrupted);
  EXPECT_FALSE(result.out_of_time);
  EXPECT_EQ(observer.starts, 1);
  EXPECT_EQ(observer.warmups, 2);
  EXPECT_EQ(observer.steps, 3);
  EXPECT_EQ(observer.ends, 1);
}

TEST(Benchmark, LossFallsOnTheFixedBatch) {
  BenchmarkConfig config = small_config();
  config.num_batches = 8;
  Benchmark benchmark(config);
  CountingObserver observer;
  benchmark.run(observer);
  EXPECT_LT(benchmark.result().losses[0].back(), benchmark.result().losses[0].front());
}

TEST(Benchmark, SameSeedSameLosses) {
  std::vector<std::vector<double>> losses;
  for (int i = 0; i < 2; ++i) {
    Benchmark benchmark(small_config());
    CountingObserver observer;
    benchmark.run(observer);
    losses.push_back(benchmark.result().losses[0]);
  }
  EXPECT_EQ(losses[0], losses[1]);
}

TEST(Benchmark, RepeatsAreKeptApart) {
  BenchmarkConfig config = small_config();
  config.repeats = 3;
  config.num_batches = 2;
  Benchmark benchmark(config);
  CountingObserver observer;
  benchmark.run(observer);
  ASSERT_EQ(benchmark.result().step_seconds.size(), 3u);
  for (const auto& repeat : benchmark.result().step_seconds) EXPECT_EQ(repeat.size(), 2u);
  const std::string text = cli::totals(benchmark.setup(), benchmark.result());
  EXPECT_NE(text.find("repeat 3:"), std::string::npos) << text;
  EXPECT_NE(text.find("median of 3 repeats"), std::string::npos) << text;
}

TEST(Benchmark, ForwardOnlyLeavesVariablesAlone) {
  BenchmarkConfig config = small_config();
  config.options.forward_only = true;
  Benchmark benchmark(config);
  CountingObserver observer;
  benchmark.run(observer);
  const auto& losses = benchmark.result().losses[0];
  EXPECT_EQ(losses.front(), losses.back());
  EXPECT_FALSE(benchmark.executable().program().trains);
}

TEST(Benchmark, StopsBetweenStepsAndKeepsWhatItHas) {
  BenchmarkConfig config = small_config();
  config.num_batches = 1000;
  Benchmark benchmark(config);
  CountingObserver observer;
  observer.stop_after_steps = 2;
  benchmark.run(observer, observer.stop.get_token());
  EXPECT_TRUE(benchmark.result().interrupted);
  EXPECT_EQ(benchmark.result().step_seconds[0].size(), 2u);
  EXPECT_EQ(observer.ends, 1);

  record::RunRecord record = start_record(config);
  fill_record(record, benchmark);
  const Json json = to_json(record);
  EXPECT_EQ(json["interrupted"], true);
  EXPECT_EQ(json["steps"][0][0].size(), 2u);
  EXPECT_GT(json["results"]["images_per_second"], 0.0);
}

TEST(Benchmark, StoppedInWarmUpHasMeasuredNothing) {
  Benchmark benchmark(small_config());
  CountingObserver observer;
  observer.stop_after_warmup = 1;
  benchmark.run(observer, observer.stop.get_token());
  EXPECT_EQ(observer.steps, 0);
  EXPECT_NE(cli::totals(benchmark.setup(), benchmark.result()).find("nothing was measured"), std::string::npos);
  record::RunRecord record = start_record(small_config());
  fill_record(record, benchmark);
  EXPECT_TRUE(to_json(record)["results"]["images_per_second"].is_null());
}

TEST(Benchmark, TimeLimitStillGivesAStepOfEachRepeat) {
  BenchmarkConfig config = small_config();
  config.max_seconds = 1e-9;
  config.repeats = 2;
  Benchmark benchmark(config);
  CountingObserver observer;
  benchmark.run(observer);
  EXPECT_TRUE(benchmark.result().out_of_time);
  EXPECT_EQ(benchmark.result().warmup_steps, 1);
  ASSERT_EQ(benchmark.result().step_seconds.size(), 2u);
  EXPECT_EQ(benchmark.result().step_seconds[1].size(), 1u);
}

TEST(Benchmark, NonFiniteLossEndsTheRunWithAHint) {
  BenchmarkConfig config = small_config();
  config.num_batches = 200;
  config.learning_rate_chosen = false;
  config.schedule.initial = 1e30;
  Benchmark benchmark(config);
  CountingObserver observer;
  try {
    benchmark.run(observer);
    FAIL() << "a learning rate of 1e30 kept the loss finite";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::failed);
    EXPECT_NE(std::string(error.what()).find("--init-learning-rate"), std::string::npos) << error.what();
  }
  EXPECT_EQ(observer.ends, 1);
}

TEST(Benchmark, RecordIsComplete) {
  const BenchmarkConfig config = small_config();
  record::RunRecord record = start_record(config);
  Benchmark benchmark(config);
  CountingObserver observer;
  benchmark.run(observer);
  fill_record(record, benchmark);
  const Json json = to_json(record);
  EXPECT_FALSE(json["build"]["version"].get<std::string>().empty());
  EXPECT_FALSE(json["machine"]["host"].get<std::string>().empty());
  EXPECT_EQ(json["config"]["batch_size"], 4);
  EXPECT_EQ(json["config"]["num_classes"], 10);
  EXPECT_EQ(json["cluster"].size(), 1u);
  const auto& seconds = benchmark.result().step_seconds[0];
  const double mean = std::accumulate(seconds.begin(), seconds.end(), 0.0) / 3;
  const Json& results = json["results"];
  EXPECT_NEAR(results["images_per_second"], 4 / mean, 1e-6 * 4 / mean);
  EXPECT_NEAR(results["step_seconds"]["mean"], mean, 1e-9);
  EXPECT_NEAR(results["flops_per_second"], benchmark.setup().flops_per_step / mean,
              1e-6 * benchmark.setup().flops_per_step / mean);
  EXPECT_GT(results["utilisation"], 0.0);
  EXPECT_EQ(results["loss"], benchmark.result().losses[0].back());
  EXPECT_GT(results["peak_rss_bytes"], 0);
  EXPECT_TRUE(results["breakdown"][0]["optimizer"].is_null());
  EXPECT_GT(results["breakdown"][0]["compute"], 0.0);
}

TEST(Benchmark, ProfileAccountsForTheStep) {
  BenchmarkConfig config = small_config();
  config.profile = true;
  Benchmark benchmark(config);
  CountingObserver observer;
  benchmark.run(observer);
  const Executable& executable = benchmark.executable();
  ASSERT_EQ(executable.profile().runs, 3);
  const double mean = 3.0;  // larger than the step: the rest is untracked
  const StepProfile profile = make_profile(executable.program(), executable.profile(), mean);
  ASSERT_FALSE(profile.instructions.empty());
  for (std::size_t i = 1; i < profile.instructions.size(); ++i) {
    EXPECT_GE(profile.instructions[i - 1].seconds, profile.instructions[i].seconds);
  }
  double by_operation = 0;
  for (const ProfileRow& row : profile.operations) by_operation += row.seconds;
  EXPECT_NEAR(by_operation, profile.tracked_seconds, 1e-9);
  EXPECT_GT(profile.update_seconds, 0);
  const std::string text = to_text(profile, benchmark.setup().peak, 2);
  EXPECT_NE(text.find("the 2 of"), std::string::npos) << text;
  EXPECT_NE(text.find("untracked"), std::string::npos) << text;
  EXPECT_NE(text.find(profile.instructions[1].name), std::string::npos);

  record::RunRecord record = start_record(config);
  fill_record(record, benchmark);
  EXPECT_GT(to_json(record)["results"]["breakdown"][0]["optimizer"], 0.0);
}

TEST(Benchmark, OverlappingInstructionsHaveNoShareOfTheStep) {
  BenchmarkConfig config = small_config();
  config.inter_threads = 2;
  config.profile = true;
  if (!fits(config)) GTEST_SKIP() << "needs 2 usable processors";
  Benchmark benchmark(config);
  CountingObserver observer;
  benchmark.run(observer);
  record::RunRecord record = start_record(config);
  fill_record(record, benchmark);
  const Json breakdown = to_json(record)["results"]["breakdown"][0];
  EXPECT_TRUE(breakdown["compute"].is_null());
  EXPECT_TRUE(breakdown["optimizer"].is_null());
  EXPECT_EQ(breakdown["input_wait"], 0.0);
}

TEST(Benchmark, InterThreadsAreBoundAndRecorded) {
  BenchmarkConfig config = small_config();
  config.inter_threads = 2;
  config.options.bind = true;
  if (!fits(config)) GTEST_SKIP() << "needs 2 usable processors";
  record::RunRecord record = start_record(config);
  // In a thread of its own: the binding would stay with the rest of this program.
  std::thread([&] {
    Benchmark benchmark(config);
    CountingObserver observer;
    benchmark.run(observer);
    fill_record(record, benchmark);
    EXPECT_NE(cli::banner(benchmark.setup()).find("1 intra x 2 inter on processors "), std::string::npos);
    EXPECT_EQ(benchmark.setup().peak.threads, 2);
  }).join();
  EXPECT_EQ(record.cluster.at(0).cores.size(), 2u);
}

TEST(Profile, SharesAreOfTheSummedTimeWhereInstructionsOverlap) {
  StepProfile profile;
  profile.instructions = {{.name = "a", .operation = "convolution", .seconds = 0.003},
                          {.name = "b", .operation = "relu", .seconds = 0.001}};
  profile.operations = {{.operation = "convolution", .seconds = 0.003}, {.operation = "relu", .seconds = 0.001}};
  profile.step_seconds = 0.002;
  profile.tracked_seconds = 0.004;
  const perf::Peak peak{.flops_per_second = 1e9, .instruction_set = "avx2+fma", .threads = 2};

  profile.inter_threads = 2;
  const std::string text = to_text(profile, peak, 10);
  EXPECT_NE(text.find("shares are of the summed instruction time"), std::string::npos) << text;
  EXPECT_NE(text.find("75.0 %"), std::string::npos) << text;
  EXPECT_EQ(text.find("150.0 %"), std::string::npos) << text;
  EXPECT_EQ(text.find("untracked"), std::string::npos) << text;

  profile.inter_threads = 1;
  profile.step_seconds = 0.006;
  const std::string alone = to_text(profile, peak, 10);
  EXPECT_EQ(alone.find("summed"), std::string::npos) << alone;
  EXPECT_NE(alone.find("50.0 %"), std::string::npos) << alone;
}

TEST(Throughput, IsImagesOverMeanTimeWithJitterOfTheSpeeds) {
  const std::vector<double> seconds{0.5, 0.25, 1.0};
  const Throughput speed = throughput(seconds, 8);  // speeds 16, 32, 8: median 16, deviations 0, 16, 8
  EXPECT_NEAR(speed.images_per_second, 8 / (1.75 / 3), 1e-9);
  EXPECT_NEAR(speed.jitter, 1.4826 * 8, 1e-9);
  EXPECT_GT(speed.uncertainty, 0);
  EXPECT_EQ(throughput({}, 8).images_per_second, 0);
}

// Two workers whose hosts' links are slow by the figures in the file.
struct SlowByTheFile {
  explicit SlowByTheFile(const std::string& started) {
    const comm::KeptFit slow{
        .fit = {.cost = {.latency_seconds = 10, .bytes_per_second = 1}, .small_sizes = 9, .large_sizes = 9},
        .when = {.started = started, .load = 0, .cores = 1}};
    comm::update_network_file(path, {{"local", {.same_host = slow, .other_host = slow}}});
  }
  // Returns the first worker's setup.
  train::WorkerSetup run() const {
    BenchmarkOptions options;
    options.model = "mnist";
    options.batch_size = 4;
    options.num_batches = 25;
    options.num_intra_threads = 1;
    options.bind = false;
    options.distribution.network_file = path;
    const BenchmarkConfig config = resolve(options, {.workers = 2});
    train::WorkerSetup first;
    comm::run_local({.size = 2, .ranks_per_node = 1}, [&](comm::Communicator& workers) {
      CountingObserver observer;
      Benchmark benchmark(config, train::ProcessGroup{workers});
      benchmark.run(observer);
      if (workers.rank() == 0) first = benchmark.setup();
    });
    return first;
  }
  comm::TransportFits fits() const { return comm::read_network_file(path).at("local"); }

  testkit::TemporaryFolder folder;
  std::string path = folder / "network.json";
};

TEST(Benchmark, StepsThatContradictTheNetworksFiguresPutThemInDoubt) {
  const SlowByTheFile job(record::rfc3339(std::chrono::system_clock::now()));
  EXPECT_TRUE(job.run().network);
  EXPECT_TRUE(job.fits().other_host->contradicted);
  EXPECT_FALSE(job.fits().same_host->contradicted) << "nothing was sent inside a host";
}

TEST(Benchmark, DoubtfulFiguresOfTheNetworkAreMeasuredAgain) {
  const SlowByTheFile job("2024-05-01T12:30:00Z");
  const train::WorkerSetup setup = job.run();
  EXPECT_FALSE(setup.network);
  ASSERT_EQ(setup.network_problems.size(), 1U);
  EXPECT_NE(setup.network_problems[0].find("it is old; measured again for this run"), std::string::npos);
  EXPECT_FALSE(job.fits().other_host->contradicted);
}

TEST(BenchmarkOutput, StepLineReadsAsKnown) {
  const std::vector<double> seconds{0.5, 0.5};
  EXPECT_EQ(cli::step_line({.step = 10, .steps = 100, .loss = 7.4123, .step_seconds = seconds}, 8),
            "10\timages/sec: 16.0 +/- 0.0 (jitter = 0.0)\t7.412\n");
}

TEST(BenchmarkOutput, ProgressGoesByStepsOrTimeWhicheverEndsFirst) {
  BenchmarkConfig config = small_config();
  config.num_warmup_batches = 10;
  config.num_batches = 90;
  EXPECT_DOUBLE_EQ(cli::progress(config, 1, 50), 0.5);
  config.max_seconds = 10;
  EXPECT_DOUBLE_EQ(cli::progress(config, 8, 50), 0.8);
  EXPECT_DOUBLE_EQ(cli::progress(config, 80, 50), 1.0);
}

TEST(Contradiction, IsFarFromWhatWasExpectedInMostStepsOrInAll) {
  const auto of = [](std::vector<double> seconds) { return train::contradiction(perf::summarize(seconds), 1, 2); };
  EXPECT_EQ(of({1, 1, 1}), std::nullopt);
  EXPECT_EQ(of({0.4, 0.45, 3}), 0.45) << "most are shorter";
  EXPECT_EQ(of({0.1, 1, 1}), std::nullopt) << "one is shorter";
  EXPECT_EQ(of({1.5, 9, 9}), std::nullopt) << "most are longer, as beside other programs";
  EXPECT_EQ(of({2.5, 9, 9}), 2.5) << "all are longer";
}

TEST(KeepTimings, APlaceThatCannotBeWrittenIsAWarningAndNoError) {
  TuneCache cache("/proc/nowhere/tune.json");
  EXPECT_EQ(train::keep_timings(cache), "") << "nothing new to keep";
  cache.add("problem", "kernel", 1);
  EXPECT_NE(train::keep_timings(cache).find("/proc/nowhere"), std::string::npos);
}

}  // namespace
}  // namespace trireme::lab
