// Learning-rate schedules at their boundaries, their text, and bad numbers.
#include "trireme/optim/schedule.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "tests/graph/expect_error.hpp"

namespace trireme {
namespace {

using testkit::expect_bad_input;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

TEST(Schedule, ConstantWithScale) {
  const LearningRateSchedule schedule{.initial = 0.1, .scale = 4};
  EXPECT_DOUBLE_EQ(schedule.at(0), 0.4);
  EXPECT_DOUBLE_EQ(schedule.at(1000000), 0.4);
}

TEST(Schedule, PiecewiseChangesAtTheFirstStepOfAnEpoch) {
  const LearningRateSchedule schedule{.shape = parse_piecewise("0.1;30;0.01;60;0.001"), .steps_per_epoch = 10};
  EXPECT_DOUBLE_EQ(schedule.at(0), 0.1);
  EXPECT_DOUBLE_EQ(schedule.at(299), 0.1);
  EXPECT_DOUBLE_EQ(schedule.at(300), 0.01);
  EXPECT_DOUBLE_EQ(schedule.at(599), 0.01);
  EXPECT_DOUBLE_EQ(schedule.at(600), 0.001);
  EXPECT_DOUBLE_EQ(schedule.at(60000), 0.001);
}

// 25 samples, 10 at a time: the second epoch ends with step 5, and the first in the middle of step 3.
TEST(Schedule, AnEpochNeedNotBeAWholeNumberOfSteps) {
  const LearningRateSchedule schedule{.shape = parse_piecewise("0.3;1;0.2;2;0.1"), .steps_per_epoch = 2.5};
  EXPECT_DOUBLE_EQ(schedule.at(2), 0.3);
  EXPECT_DOUBLE_EQ(schedule.at(3), 0.2);
  EXPECT_DOUBLE_EQ(schedule.at(4), 0.2);
  EXPECT_DOUBLE_EQ(schedule.at(5), 0.1);
  const LearningRateSchedule small{.shape = parse_piecewise("0.3;2;0.2"), .steps_per_epoch = 0.5};
  EXPECT_NO_THROW(validate(small));
  EXPECT_DOUBLE_EQ(small.at(0), 0.3);
  EXPECT_DOUBLE_EQ(small.at(1), 0.2);
}

TEST(Schedule, ExponentialInStepsAndSmooth) {
  LearningRateSchedule schedule{.initial = 1, .shape = ExponentialRate{0.5, 2, true}, .steps_per_epoch = 10};
  EXPECT_DOUBLE_EQ(schedule.at(19), 1);
  EXPECT_DOUBLE_EQ(schedule.at(20), 0.5);
  EXPECT_DOUBLE_EQ(schedule.at(40), 0.25);
  schedule.shape = ExponentialRate{0.25, 2, false};
  EXPECT_DOUBLE_EQ(schedule.at(10), 0.5);
}

TEST(Schedule, CosineFallsToTheMinimumAndStays) {
  const LearningRateSchedule schedule{.initial = 1, .shape = CosineRate{10, 0.2}, .steps_per_epoch = 10};
  EXPECT_DOUBLE_EQ(schedule.at(0), 1);
  EXPECT_DOUBLE_EQ(schedule.at(50), 0.6);
  EXPECT_DOUBLE_EQ(schedule.at(100), 0.2);
  EXPECT_DOUBLE_EQ(schedule.at(500), 0.2);
}

TEST(Schedule, WarmUpIsLinearAndMeetsTheShape) {
  const LearningRateSchedule constant{.initial = 0.1, .warmup_epochs = 5, .scale = 2, .steps_per_epoch = 10};
  EXPECT_DOUBLE_EQ(constant.at(0), 0);
  EXPECT_DOUBLE_EQ(constant.at(25), 0.1);
  EXPECT_DOUBLE_EQ(constant.at(50), 0.2);
  const LearningRateSchedule cosine{
      .initial = 1, .shape = CosineRate{10, 0}, .warmup_epochs = 5, .steps_per_epoch = 100};
  EXPECT_DOUBLE_EQ(cosine.at(500), 0.5);
  EXPECT_NEAR(cosine.at(499), 0.5, 0.002);
}

// As tf_cnn_benchmarks trains ResNet.
TEST(Schedule, PiecewiseAfterWarmUpAndScaled) {
  const LearningRateSchedule schedule{
      .initial = 0.128,
      .shape = PiecewiseRate{{30, 60, 80, 90}, {0.128, 0.0128, 0.00128, 0.000128, 0.0000128}},
      .warmup_epochs = 5,
      .scale = linear_scaling(1024),
      .steps_per_epoch = 100};
  EXPECT_DOUBLE_EQ(schedule.at(0), 0);
  EXPECT_DOUBLE_EQ(schedule.at(250), 0.256);
  EXPECT_DOUBLE_EQ(schedule.at(500), 0.512);
  EXPECT_DOUBLE_EQ(schedule.at(2999), 0.512);
  EXPECT_DOUBLE_EQ(schedule.at(3000), 0.0512);
  EXPECT_DOUBLE_EQ(schedule.at(6000), 0.00512);
  EXPECT_DOUBLE_EQ(schedule.at(8000), 0.000512);
  EXPECT_DOUBLE_EQ(schedule.at(9000), 0.0000512);
}

TEST(Schedule, LinearScaling) {
  EXPECT_DOUBLE_EQ(linear_scaling(64), 0.25);
  EXPECT_DOUBLE_EQ(linear_scaling(64, 32), 2);
  expect_bad_input([] { linear_scaling(0); }, {"global batch is 0"});
  expect_bad_input([] { linear_scaling(1, -1); }, {"reference batch is -1"});
}

TEST(ParsePiecewise, TakesRatesAndEpochsInTurn) {
  const PiecewiseRate rate = parse_piecewise("0.1;2.5;1e-3");
  EXPECT_EQ(rate.values, (std::vector{0.1, 1e-3}));
  EXPECT_EQ(rate.boundaries, std::vector{2.5});
  EXPECT_TRUE(parse_piecewise("0.5").boundaries.empty());
}

TEST(ParsePiecewise, QuotesWhatIsWrong) {
  expect_bad_input([] { parse_piecewise("0.1;thirty;0.01"); },
                   {"'0.1;thirty;0.01'", "'thirty' is not a number", "LR0;E1;LR1"});
  expect_bad_input([] { parse_piecewise(""); }, {"'' is not a number"});
  expect_bad_input([] { parse_piecewise("0.1;30;"); }, {"'' is not a number"});
  expect_bad_input([] { parse_piecewise("0.1;30"); }, {"'0.1;30'", "one more rate than epochs"});
  expect_bad_input([] { parse_piecewise("0.1;30;0.01;20;0.001"); }, {"epoch 20 is not greater than 30"});
  expect_bad_input([] { parse_piecewise("0.1;0;0.01"); }, {"epoch 0"});
  expect_bad_input([] { parse_piecewise("nan"); }, {"'nan'", "rate nan"});
  expect_bad_input([] { parse_piecewise("0.1;30;-0.01"); }, {"rate -0.01", "above 0"});
  expect_bad_input([] { parse_piecewise("0"); }, {"rate 0", "above 0"});
  expect_bad_input([] { parse_piecewise("0.1;inf;0.01"); }, {"epoch inf"});
}

TEST(ValidateSchedule, RefusesNumbersThatCannotBe) {
  EXPECT_NO_THROW(validate({}));
  for (const double rate : {0.0, -1.0, kNan, kInf}) {
    expect_bad_input([&] { validate({.initial = rate}); }, {"the learning rate is", "above 0"});
    expect_bad_input([&] { validate({.scale = rate}); }, {"scale is"});
  }
  expect_bad_input([] { validate({.warmup_epochs = kNan}); }, {"warm-up epochs is nan"});
  expect_bad_input([] { validate({.steps_per_epoch = 0}); }, {"steps per epoch is 0"});
  expect_bad_input([] { validate({.shape = ExponentialRate{.decay = 1.5}}); }, {"decay is 1.5"});
  expect_bad_input([] { validate({.shape = ExponentialRate{.epochs_per_decay = 0}}); }, {"epochs per decay is 0"});
  expect_bad_input([] { validate({.shape = CosineRate{.total_epochs = kNan}}); }, {"total epochs is nan"});
  expect_bad_input([] { validate({.initial = 0.1, .shape = CosineRate{.minimum = 0.2}}); }, {"minimum", "0.2", "0.1"});
  expect_bad_input([] { validate({.shape = PiecewiseRate{{1}, {0.1}}}); }, {"one more rate"});
}

TEST(ScheduleText, SaysTheShapeScaleAndWarmUp) {
  EXPECT_EQ(to_string(LearningRateSchedule{.initial = 0.1}), "constant 0.1");
  const LearningRateSchedule schedule{.shape = parse_piecewise("0.1;30;0.01"), .warmup_epochs = 5, .scale = 4};
  EXPECT_EQ(to_string(schedule), "piecewise 0.1;30;0.01, scaled by 4, 5 epochs of warm-up");
  EXPECT_EQ(to_string(LearningRateSchedule{.initial = 1, .shape = CosineRate{90, 0}}), "cosine 1 to 0 over 90 epochs");
  EXPECT_EQ(to_string(LearningRateSchedule{.initial = 1, .shape = ExponentialRate{}}),
            "exponential 1 x 0.94 every 2 epochs (staircase)");
}

}  // namespace
}  // namespace trireme
