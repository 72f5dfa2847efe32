#include "trireme/train/data_input.hpp"

#include <gtest/gtest.h>

#include "cli/benchmark_output.hpp"
#include "tests/support/idx_files.hpp"
#include "tests/support/temporary_folder.hpp"
#include "trireme/base/error.hpp"
#include "trireme/lab/bench/benchmark.hpp"
#include "trireme/lab/bench/job_figures.hpp"

namespace trireme::lab {
namespace {

class BenchmarkOnData : public ::testing::Test {
 protected:
  BenchmarkOnData() { testkit::write_idx(folder_.path(), 50); }

  BenchmarkOptions options() const {
    BenchmarkOptions options;
    options.model = "mnist";
    options.batch_size = 4;
    options.num_batches = 3;
    options.num_warmup_batches = 1;
    options.num_intra_threads = 1;
    options.autotune = "off";
    options.bind = false;
    options.data.dir = folder_.path();
    return options;
  }

  testkit::TemporaryFolder folder_;
};

std::string message_of(const BenchmarkOptions& options) {
  try {
    Benchmark benchmark(resolve(options));
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::bad_input);
    return error.what();
  }
  return "";
}

TEST_F(BenchmarkOnData, TakesANewBatchForEveryStepAndSaysWhatThatCosts) {
  Benchmark benchmark(resolve(options()));
  BenchmarkObserver silent;
  benchmark.run(silent);
  const BenchmarkResult& result = benchmark.result();
  ASSERT_EQ(result.ranks.size(), 1u);
  EXPECT_GT(result.ranks[0].input, 0);
  EXPECT_LT(result.ranks[0].input, result.ranks[0].step);
  record::RunRecord record = start_record(benchmark.setup().config);
  fill_record(record, benchmark);
  const record::Breakdown& breakdown = record.results.breakdown.at(0);
  EXPECT_EQ(breakdown.input_wait, result.ranks[0].input);
  EXPECT_NEAR(*breakdown.compute + *breakdown.input_wait, result.ranks[0].step, 1e-9);
  EXPECT_EQ(record.config["data_dir"], folder_.path().string());
  EXPECT_EQ(record.results.bad_records, 0);
  EXPECT_FALSE(record.results.io_overhead_percent);
  // A schedule's epoch is one of this data set.
  EXPECT_EQ(benchmark.setup().config.schedule.steps_per_epoch, 50 / 4.0);
  const std::string text = cli::banner(benchmark.setup());
  EXPECT_NE(text.find("idx (" + folder_.path().string() + "): 50 images of 1x28x28"), std::string::npos) << text;
  EXPECT_NE(text.find("no crop, to 1x28x28, (pixel - 127.5) / 127.5; 1 thread per worker, 2 batches ahead"),
            std::string::npos)
      << text;
  EXPECT_NE(cli::totals(benchmark.setup(), result).find("input wait: "), std::string::npos);
}

TEST_F(BenchmarkOnData, ComparesWithStepsThatTakeNoInput) {
  BenchmarkOptions with_overhead = options();
  with_overhead.io_overhead = true;
  const BenchmarkConfig config = resolve(with_overhead);
  EXPECT_EQ(config.repeats, 5);
  Benchmark benchmark(config);
  BenchmarkObserver silent;
  benchmark.run(silent);
  const InputCost& cost = benchmark.result().input_cost;
  ASSERT_EQ(cost.real.size(), 5u);
  ASSERT_EQ(cost.in_place.size(), 5u);
  const std::vector<double> overheads = cost.overheads();
  EXPECT_NEAR(overheads[2], 100 * (cost.in_place[2] - cost.real[2]) / cost.in_place[2], 1e-9);
  EXPECT_NE(cli::totals(benchmark.setup(), benchmark.result()).find("I/O overhead: "), std::string::npos);
  record::RunRecord record = start_record(config);
  fill_record(record, benchmark);
  EXPECT_TRUE(record.results.io_overhead_percent);
  EXPECT_EQ(record.results.io_overhead_percent_per_repeat, overheads);
}

TEST_F(BenchmarkOnData, GroupsGetTheirShares) {
  BenchmarkOptions one = options(), two = options();
  one.batch_split = "1";
  two.batch_split = "2";
  two.num_intra_threads = 2;
  BenchmarkObserver silent;
  Benchmark whole(resolve(one));
  whole.run(silent);
  std::vector<double> losses;
  try {
    Benchmark split(resolve(two));
    split.run(silent);
    losses = split.result().losses[0];
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::bad_input) GTEST_SKIP() << error.what();  // one processor only
    throw;
  }
  for (std::size_t i = 0; i < losses.size(); ++i) EXPECT_NEAR(losses[i], whole.result().losses[0][i], 1e-4);
}

TEST_F(BenchmarkOnData, DataMustSuitTheNetwork) {
  BenchmarkOptions wrong = options();
  wrong.num_classes = 7;
  EXPECT_NE(message_of(wrong).find("its images have 10 classes but the network has 7; use --num-classes 10"),
            std::string::npos);
}

// CIFAR-10's networks have 11 classes by themselves.
TEST_F(BenchmarkOnData, TheNetworkHasTheClassesOfTheData) {
  BenchmarkOptions cifar = options();
  cifar.model = "resnet20";
  EXPECT_EQ(Benchmark(resolve(cifar)).setup().model.classes, 10);
  cifar.num_classes = 12;
  EXPECT_EQ(Benchmark(resolve(cifar)).setup().model.classes, 12);
}

TEST_F(BenchmarkOnData, AStepDoesNotTakeAnImageTwice) {
  BenchmarkOptions large = options();
  large.batch_size = 50;
  EXPECT_EQ(message_of(large), "");
  large.batch_size = 51;
  EXPECT_NE(message_of(large).find("--batch-size 51: a step of 1 worker takes 51 images, and " +
                                   folder_.path().string() + " has 50; --batch-size 50 at most"),
            std::string::npos)
      << message_of(large);
}

TEST_F(BenchmarkOnData, WhatIsDoneToImagesIsChosenSaidAndRecorded) {
  BenchmarkOptions chosen = options();
  chosen.data.crop = "padded";
  chosen.data.augment = "flip,colour";
  chosen.data.mean = "33.3";
  chosen.data.deviation = "78.6";
  Benchmark benchmark(resolve(chosen));
  const std::string text = cli::banner(benchmark.setup());
  EXPECT_NE(text.find("random crop after padding, flip, distorted colours, to 1x28x28, (pixel - 33.3) / 78.6"),
            std::string::npos)
      << text;
  record::RunRecord record = start_record(benchmark.setup().config);
  fill_record(record, benchmark);
  EXPECT_EQ(record.config["crop"], "padded");
  EXPECT_EQ(record.config["eval_crop"], "none");
  EXPECT_EQ(record.config["augment"], "flip,colour");
  EXPECT_EQ(record.config["mean"], "33.3");
  EXPECT_EQ(record.config["std"], "78.6");

  chosen = options();
  chosen.forward_only = true;
  chosen.data.crop = "centre";
  EXPECT_NE(cli::banner(Benchmark(resolve(chosen)).setup()).find("centre crop, to 1x28x28"), std::string::npos);
}

TEST_F(BenchmarkOnData, WhatIsNoDataSetIsSaid) {
  BenchmarkOptions wrong = options();
  wrong.data.dir = folder_ / "nothing";
  EXPECT_NE(message_of(wrong).find("nothing"), std::string::npos);
  wrong = options();
  wrong.data.name = "cifar10";
  EXPECT_NE(message_of(wrong).find("cifar10"), std::string::npos);
}

TEST(DataOptions, AreRefusedWhereTheyHaveNoEffectOrCannotBe) {
  const auto message = [](const std::function<void(train::DataOptions&)>& change) -> std::string {
    train::DataOptions options;
    change(options);
    try {
      train::resolve_data(options);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message([](train::DataOptions&) {}), "");
  EXPECT_NE(message([](train::DataOptions& o) { o.prefetch = 3; }).find("--prefetch has no effect on synthetic"),
            std::string::npos);
  const auto with_data = [&](const std::function<void(train::DataOptions&)>& change) {
    return message([&](train::DataOptions& options) {
      options.dir = "data";
      change(options);
    });
  };
  EXPECT_EQ(with_data([](train::DataOptions&) {}), "");
  EXPECT_NE(with_data([](train::DataOptions& o) { o.threads = 0; }).find("--data-threads 0"), std::string::npos);
  EXPECT_NE(with_data([](train::DataOptions& o) { o.crop = "middle"; }).find("--crop middle"), std::string::npos);
  EXPECT_NE(with_data([](train::DataOptions& o) {
              o.augment = "flip";
              o.distortions = true;
            }).find("leave one out"),
            std::string::npos);
  EXPECT_NE(message([](train::DataOptions& o) { o.mean = "1"; }).find("--mean has no effect on synthetic"),
            std::string::npos);
  EXPECT_NE(with_data([](train::DataOptions& o) { o.max_bad_records = -1; }).find("--max-bad-records -1"),
            std::string::npos);
}

}  // namespace
}  // namespace trireme::lab
