// Every network, as `trireme bench --model M` trains it: several steps on one fixed batch with the default optimizer
// and learning rate. The loss must be finite at every step and lower at the end than at the start.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "trireme/lab/bench/benchmark.hpp"

namespace trireme::lab {
namespace {

// Two images: batch norm over a single one would leave the deepest layers of some networks one value per channel.
constexpr std::int64_t kBatchSize = 2;
constexpr std::int64_t kSteps = 5;

class NetworkTrains : public ::testing::TestWithParam<std::string> {};

void expect_falling_loss(BenchmarkOptions options) {
  options.batch_size = kBatchSize;
  options.num_batches = kSteps;
  options.num_warmup_batches = 0;
  options.no_dropout = true;  // noise that hides the trend of a few steps; its operation has tests of its own
  options.batch_split = std::string("1");  // choosing one would take longer than the steps
  options.bind = false;                    // networks tested at the same time must not share one core
  Benchmark benchmark(resolve(options));
  BenchmarkObserver observer;
  benchmark.run(observer);  // throws where the loss is not finite
  const auto& losses = benchmark.result().losses.at(0);
  ASSERT_EQ(losses.size(), static_cast<std::size_t>(kSteps));
  EXPECT_LT(losses.back(), losses.front()) << ::testing::PrintToString(losses);
  // At the start nothing is known: about the logarithm of the number of classes.
  EXPECT_LT(losses.front(), 3 * std::log(static_cast<double>(benchmark.setup().model.classes)))
      << ::testing::PrintToString(losses);
}

TEST_P(NetworkTrains, LossFallsOnAFixedBatch) {
  BenchmarkOptions options;
  options.model = GetParam();
  expect_falling_loss(options);
}

std::vector<std::string> names() {
  std::vector<std::string> result;
  for (const Network& model : model_list()) result.push_back(model.name);
  return result;
}

INSTANTIATE_TEST_SUITE_P(EveryNetwork, NetworkTrains, ::testing::ValuesIn(names()), [](const auto& parameter) {
  std::string name = parameter.param;
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
});

TEST(NetworkTrainsToo, Inception3WithItsAuxiliaryHead) {
  BenchmarkOptions options;
  options.model = "inception3";
  options.aux_head = true;
  expect_falling_loss(options);
}

}  // namespace
}  // namespace trireme::lab
