// Building, compiling and planning very deep networks takes as many times longer as they have more layers.
#include <gtest/gtest.h>

#include <ctime>

#include "trireme/train/memory_check.hpp"

namespace trireme::train {
namespace {

// Of this process: other programs do not count.
double cpu_seconds(const std::function<void()>& work) {
  const std::clock_t start = std::clock();
  work();
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

double seconds_to_plan(int blocks) {
  StepOptions options;
  options.model = "resnet" + std::to_string(9 * blocks + 2) + "_v2";
  options.batch_size = 1;
  options.autotune = "off";
  options.distribution.parallel = "pipeline:4";
  const StepConfig step = resolve(options, {.workers = 4});
  return cpu_seconds([&] { EXPECT_EQ(planned_memory({.step = step}).size(), 4U); });
}

// Four times the layers: quadratic work would take 16 times as long.
TEST(DeepNetwork, PlanningGrowsWithTheLayers) {
  const double small = seconds_to_plan(60), large = seconds_to_plan(240);
  EXPECT_LT(large, 8 * small) << "542 layers: " << small << " s, 2162 layers: " << large << " s";
}

}  // namespace
}  // namespace trireme::train
