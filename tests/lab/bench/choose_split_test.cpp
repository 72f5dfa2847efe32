#include "trireme/train/choose_split.hpp"

#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>

#include "cli/benchmark_output.hpp"
#include "trireme/backend/registry.hpp"
#include "trireme/base/error.hpp"
#include "trireme/lab/bench/benchmark.hpp"

namespace trireme::lab {
namespace {

using train::best_groups;
using train::possible_splits;
using train::SplitChoice;
using train::SplitTrial;

BenchmarkConfig small_config(const std::string& batch_split) {
  BenchmarkOptions options;
  options.model = "resnet20";
  options.batch_size = 4;
  options.num_batches = 3;
  options.num_warmup_batches = 1;
  options.num_intra_threads = 2;
  options.batch_split = batch_split;
  options.bind = false;
  BenchmarkConfig config = resolve(options);
  config.tune_cache.clear();
  return config;
}

bool can_split() {
  const auto names = backend_names();
  return omp_get_num_procs() >= 2 && std::find(names.begin(), names.end(), "onednn") != names.end();
}

std::string message_of(const BenchmarkConfig& config) {
  try {
    Benchmark benchmark(config);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::bad_input);
    return error.what();
  }
  return "no error";
}

TEST(ChooseSplit, ThreadsAndBatchAreDividedEvenly) {
  EXPECT_EQ(possible_splits(1, 8), std::vector<int>({1}));
  EXPECT_EQ(possible_splits(2, 8), std::vector<int>({1, 2}));
  EXPECT_EQ(possible_splits(2, 7), std::vector<int>({1}));
  EXPECT_EQ(possible_splits(12, 8), std::vector<int>({1, 2, 4}));
  EXPECT_EQ(possible_splits(16, 4), std::vector<int>({1, 2, 4}));
}

TEST(ChooseSplit, AGainWithinTheNoiseGoesToFewerGroups) {
  EXPECT_EQ(best_groups({{1, 100}}), 1);
  EXPECT_EQ(best_groups({{1, 100}, {2, 101.9}}), 1);
  EXPECT_EQ(best_groups({{1, 100}, {2, 102.1}}), 2);
  EXPECT_EQ(best_groups({{1, 100}, {2, 102.5}, {4, 104}}), 2);
  EXPECT_EQ(best_groups({{1, 100}, {2, 90}, {4, 120}}), 4);
}

TEST(ChooseSplit, WhatIsFoundIsKeptAndNotMeasuredAgain) {
  if (!can_split()) GTEST_SKIP() << "needs oneDNN and two processors";
  const BenchmarkConfig config = small_config("auto");
  const TuningOptions tuning = train::tuning_options(config, perf::Machine{});
  perf::Peak peak;
  peak.flops_per_second = 1e11;
  const SplitChoice first = train::choose_split(config, 2, tuning, peak);
  ASSERT_EQ(first.trials.size(), 2u);
  EXPECT_EQ(first.groups, best_groups(first.trials));
  const int timed = tuning.cache->added();
  const SplitChoice second = train::choose_split(config, 2, tuning, peak);
  EXPECT_EQ(tuning.cache->added(), timed);
  EXPECT_EQ(second.groups, first.groups);
  EXPECT_EQ(second.trials[1].images_per_second, first.trials[1].images_per_second);
}

TEST(ChooseSplit, NothingIsMeasuredWithoutTuning) {
  BenchmarkConfig config = small_config("auto");
  config.autotune = Autotune::off;
  const TuningOptions tuning = train::tuning_options(config, perf::Machine{});
  EXPECT_EQ(train::choose_split(config, 2, tuning, {}).groups, 1);
  EXPECT_EQ(tuning.cache->added(), 0);
}

TEST(ChooseSplit, ASplitBatchHasTheLossesOfTheWhole) {
  if (!can_split()) GTEST_SKIP() << "needs oneDNN and two processors";
  Benchmark whole(small_config("1")), split(small_config("2"));
  BenchmarkObserver observer;
  whole.run(observer);
  split.run(observer);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(split.result().losses[0][i], whole.result().losses[0][i], 1e-2 * whole.result().losses[0][i]);
  }
  EXPECT_NEAR(split.setup().flops_per_step, whole.setup().flops_per_step, 1e-6 * whole.setup().flops_per_step);
  EXPECT_NE(cli::banner(split.setup()).find("2 groups of 2 images on 1 thread each"), std::string::npos)
      << cli::banner(split.setup());
}

TEST(ChooseSplit, WhatCannotBeDividedIsRefusedWithTheNumbers) {
  BenchmarkOptions options;
  options.batch_size = 9;
  for (const auto& [text, expected] : {std::pair{"2", "9 images cannot be divided"}, std::pair{"0", "must be auto or"},
                                       std::pair{"two", "must be auto or"}, std::pair{"2x", "must be auto or"}}) {
    options.batch_split = text;
    try {
      resolve(options);
      ADD_FAILURE() << text << " was accepted";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(expected), std::string::npos) << error.what();
    }
  }
  options.batch_split = "auto";
  options.batch_norm_over = "group";
  EXPECT_THROW(resolve(options), Error);
  options.batch_split = "3";
  EXPECT_EQ(resolve(options).batch_norm_over, train::BatchNormOver::group);
  options.forward_only = true;
  EXPECT_THROW(resolve(options), Error);
  if (!can_split()) return;
  const std::string message = message_of(small_config("4"));  // of two threads
  EXPECT_NE(message.find("2 threads cannot be divided evenly over 4 groups"), std::string::npos) << message;
}

}  // namespace
}  // namespace trireme::lab
