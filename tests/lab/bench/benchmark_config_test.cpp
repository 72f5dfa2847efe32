#include "trireme/lab/bench/benchmark_config.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "trireme/base/error.hpp"

namespace trireme::lab {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

std::string message_of_bad_input(const BenchmarkOptions& options) {
  try {
    resolve(options);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::bad_input);
    return error.what();
  }
  return "";
}

template <typename Change>
void expect_refused(Change change, const std::string& part) {
  BenchmarkOptions options;
  change(options);
  const std::string message = message_of_bad_input(options);
  EXPECT_NE(message.find(part), std::string::npos) << "expected '" << part << "' in: " << message;
}

TEST(BenchmarkConfig, WithoutOptionsIsAQuickRunOfResnet50) {
  const BenchmarkConfig config = resolve({});
  EXPECT_EQ(config.options.model, "resnet50");
  EXPECT_EQ(config.batch_size, 16);
  EXPECT_TRUE(config.batch_size_chosen);
  EXPECT_GT(config.max_seconds, 0);
  EXPECT_LE(config.max_seconds, 110);
}

TEST(BenchmarkConfig, ANumberOfStepsMeansTheNetworksOwnBatchAndNoLimit) {
  BenchmarkOptions options;
  options.num_batches = 7;
  const BenchmarkConfig config = resolve(options);
  EXPECT_EQ(config.batch_size, find_model("resnet50").batch_size);
  EXPECT_EQ(config.num_batches, 7);
  EXPECT_FALSE(config.max_seconds);
}

TEST(BenchmarkConfig, PiecewiseScheduleGivesTheFirstRate) {
  BenchmarkOptions options;
  options.piecewise_learning_rate_schedule = "0.2;3;0.02";
  options.batch_size = 32;
  const BenchmarkConfig config = resolve(options);
  EXPECT_FALSE(config.learning_rate_chosen);
  EXPECT_DOUBLE_EQ(config.schedule.at(0), 0.2);
  EXPECT_EQ(config.schedule.steps_per_epoch, 1'281'167 / 32.0);
  const double third_epoch = std::floor(3 * config.schedule.steps_per_epoch);  // ends within this step
  EXPECT_DOUBLE_EQ(config.schedule.at(third_epoch), 0.2);
  EXPECT_DOUBLE_EQ(config.schedule.at(third_epoch + 1), 0.02);
}

TEST(BenchmarkConfig, BadNumbersAreRefusedByName) {
  expect_refused([](auto& o) { o.batch_size = 0; }, "--batch-size 0");
  expect_refused([](auto& o) { o.batch_size = -4; }, "--batch-size -4");
  expect_refused([](auto& o) { o.num_batches = 0; }, "--num-batches 0");
  expect_refused([](auto& o) { o.num_warmup_batches = -1; }, "--num-warmup-batches -1");
  expect_refused([](auto& o) { o.repeats = 0; }, "--repeats 0");
  expect_refused([](auto& o) { o.display_every = 0; }, "--display-every 0");
  expect_refused([](auto& o) { o.num_classes = 1; }, "--num-classes 1");
  expect_refused([](auto& o) { o.max_seconds = kNaN; }, "--max-seconds nan");
  expect_refused([](auto& o) { o.tune_cache = "/dev/null"; }, "--tune-cache '/dev/null'");
  expect_refused([](auto& o) { o.init_learning_rate = kNaN; }, "--init-learning-rate nan");
  expect_refused([](auto& o) { o.init_learning_rate = 0; }, "--init-learning-rate 0");
  expect_refused([](auto& o) { o.init_learning_rate = -0.1; }, "--init-learning-rate -0.1");
  expect_refused([](auto& o) { o.weight_decay = -1; }, "--weight-decay -1");
  expect_refused([](auto& o) { o.optimizer_numbers["momentum"] = 1; }, "--momentum 1");
  expect_refused([](auto& o) { o.label_smoothing = kNaN; }, "--label-smoothing nan");
  expect_refused([](auto& o) { o.num_intra_threads = -1; }, "--num-intra-threads -1");
  expect_refused([](auto& o) { o.seed = -1; }, "--seed -1");
}

TEST(BenchmarkConfig, RatesThatFp32CannotHoldAreRefused) {
  expect_refused([](auto& o) { o.init_learning_rate = 1e39; }, "--init-learning-rate 1e+39");
  expect_refused([](auto& o) { o.init_learning_rate = 1e-60; }, "--init-learning-rate 1e-60");
  expect_refused([](auto& o) { o.piecewise_learning_rate_schedule = "0.1;1;1e39"; },
                 "--piecewise-learning-rate-schedule 1e+39");
  BenchmarkOptions options;
  options.init_learning_rate = 1e38;  // large, but a rate
  EXPECT_EQ(message_of_bad_input(options), "");
}

TEST(BenchmarkConfig, SchedulesOutOfRangeAreRefused) {
  const auto exponential = [](double decay) {
    return [decay](auto& o) {
      o.learning_rate_schedule = "exponential";
      o.learning_rate_decay_factor = decay;
    };
  };
  expect_refused(exponential(3), "--learning-rate-decay-factor 3");
  expect_refused(exponential(kNaN), "--learning-rate-decay-factor nan");
  expect_refused([](auto& o) { o.num_learning_rate_warmup_epochs = -1; }, "--num-learning-rate-warmup-epochs -1");
}

TEST(BenchmarkConfig, BadChoicesAreRefusedWithTheLegalOnes) {
  expect_refused([](auto& o) { o.model = "resnet51"; }, "resnet50");
  expect_refused([](auto& o) { o.optimizer = "luck"; }, "rmsprop");
  expect_refused([](auto& o) { o.backend = "cudnn"; }, "reference");
  expect_refused([](auto& o) { o.data_format = "chwn"; }, "auto, nchw, nhwc");
  expect_refused([](auto& o) { o.learning_rate_schedule = "linear"; }, "constant, piecewise, exponential, cosine");
}

TEST(BenchmarkConfig, WhatThisBuildLacksIsRefusedWithWhatItHas) {
  expect_refused([](auto& o) { o.device = "tpu"; }, "must be cpu, cuda, or one GPU of several");
  expect_refused([](auto& o) { o.precision = "fp8"; }, "must be one of fp32, tf32, bf16, fp16");
  expect_refused([](auto& o) { o.precision = "fp16"; }, "fp16: needs a GPU");
  expect_refused([](auto& o) { o.precision = "tf32"; }, "tf32: needs a GPU");
  expect_refused([](auto& o) { o.precision = "bf16", o.backend = "reference"; }, "use --precision fp32");
  expect_refused([](auto& o) { o.distribution.variable_update = "parameter_server"; }, "needs parameter servers");
}

TEST(BenchmarkConfig, OptionsThatWouldHaveNoEffectAreRefused) {
  expect_refused([](auto& o) { o.aux_head = o.forward_only = true; }, "--aux-head");
  expect_refused([](auto& o) { o.learning_rate_schedule = "piecewise"; }, "--piecewise-learning-rate-schedule");
  expect_refused([](auto& o) { o.num_epochs_per_decay = 3; }, "--num-epochs-per-decay");
  expect_refused([](auto& o) { o.learning_rate_decay_factor = 3; }, "--learning-rate-decay-factor");
  expect_refused(
      [](auto& o) {
        o.init_learning_rate = 0.1;
        o.piecewise_learning_rate_schedule = "0.1;1;0.2";
      },
      "--init-learning-rate");
}

TEST(BenchmarkConfig, TheCostOfInputIsThatOfADataSet) {
  BenchmarkOptions options;
  options.io_overhead = true;
  EXPECT_NE(message_of_bad_input(options).find("--io-overhead has no effect on synthetic images"), std::string::npos);
}

TEST(BenchmarkConfig, ABaselineIsForWorkersInLockStep) {
  BenchmarkOptions options;
  options.baseline = true;
  EXPECT_NE(message_of_bad_input(options).find("one worker"), std::string::npos);
  options.distribution.asynchronous = true;
  try {
    resolve(options, {.workers = 2, .servers = 1});
    FAIL() << "not refused";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("there is no lock-step"), std::string::npos) << error.what();
  }
}

TEST(BenchmarkConfig, ALaunchFindsTheseMistakesBeforeItStartsAnything) {
  BenchmarkOptions options;
  options.baseline = true;
  EXPECT_NO_THROW(check_before_launch(options, {.workers = 2}));
  EXPECT_THROW(check_before_launch(options, {.workers = 1}), Error);
  options.io_overhead = true;
  EXPECT_THROW(check_before_launch(options, {.workers = 2}), Error);
}

TEST(BenchmarkConfig, NumbersThatTheOptimizerDoesNotHaveAreRefused) {
  BenchmarkOptions options;
  options.optimizer_numbers["beta2"] = 0.95;
  EXPECT_NE(message_of_bad_input(options).find("--beta2 has no effect on the optimizer momentum"), std::string::npos);
  options.optimizer_numbers = {{"beta_2", 0.95}};
  EXPECT_NE(message_of_bad_input(options).find("'beta_2' is not an option of an optimizer"), std::string::npos);
}

TEST(BenchmarkConfig, JsonHasTheOptionsAsResolved) {
  BenchmarkOptions options;
  options.model = "mnist";
  options.data_format = "NHWC";
  const Json json = to_json(resolve(options));
  EXPECT_EQ(json["model"], "mnist");
  EXPECT_EQ(json["data_format"], "nhwc");
  EXPECT_EQ(json["weight_decay"], 4e-5);
  EXPECT_EQ(json["optimizer"], "momentum");
  EXPECT_FALSE(json.contains("beta2"));
  options.optimizer = "adamw";
  options.optimizer_numbers["beta2"] = 0.95;
  const Json adamw = to_json(resolve(options));
  EXPECT_EQ(adamw["beta1"], 0.9);
  EXPECT_EQ(adamw["beta2"], 0.95);
  EXPECT_FALSE(json["backend"].get<std::string>().empty());
}

}  // namespace
}  // namespace trireme::lab
