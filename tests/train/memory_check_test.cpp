// What does not fit into memory is refused by arithmetic alone. As a user meets it: tests/cli.
#include "trireme/train/memory_check.hpp"

#include <gtest/gtest.h>

#include "trireme/base/error.hpp"

namespace trireme::train {
namespace {

constexpr std::int64_t kGB = 1'000'000'000;

StepConfig config_of(std::int64_t batch_size) {
  StepOptions options;
  options.model = "mnist";
  options.batch_size = batch_size;
  options.autotune = "off";
  return resolve(options);
}

// 10 GB for 100 images, and 2 GB whatever their number.
constexpr MemoryNeed kNeed{.activations = 9e9, .variables = 2e9, .batches = 1e9, .cache = 0};

HostMemory host_with(std::int64_t bytes, int workers = 1) {
  return {.host = "node1", .workers = workers, .free = {.bytes = bytes, .swap_bytes = 0}};
}

std::string refusal(const MemoryNeed& need, const HostMemory& memory) {
  try {
    check_memory(need, memory, config_of(100));
  } catch (const Error& error) {
    EXPECT_EQ(static_cast<int>(error.kind()), static_cast<int>(ErrorKind::bad_input));
    return error.what();
  }
  return "";
}

TEST(MemoryCheck, WhatFitsIsNotSpokenOf) { EXPECT_EQ(check_memory(kNeed, host_with(12 * kGB), config_of(100)), ""); }

TEST(MemoryCheck, WhatDoesNotFitIsRefusedWithWhatWould) {
  const std::string message = refusal(kNeed, host_with(8 * kGB));
  EXPECT_EQ(
      message.find("--batch-size 100: 12.0 GB of memory is needed (activations and scratch 9.0 GB, variables with "
                   "gradients and optimizer state 2.0 GB, batches of input 1.0 GB), but 8.0 GB is available; about "
                   "60 images fit; --recompute cheap or full uses less; 2 workers with --batch-size 50 --parallel "
                   "pipeline:2 need "),
      0U)
      << message;
  EXPECT_NE(refusal(kNeed, host_with(kGB)).find("not even one image fits"), std::string::npos);
}

TEST(MemoryCheck, TheWorkersOfAHostNeedItTogether) {
  const std::string message = refusal(kNeed, host_with(14 * kGB, 2));
  EXPECT_NE(message.find("12.0 GB of memory is needed for each of 2 workers on node1"), std::string::npos) << message;
  EXPECT_NE(message.find("but 7.0 GB is available for each; "), std::string::npos) << message;
  EXPECT_NE(message.find("about 50 images fit"), std::string::npos) << message;
}

// More workers on this host would share what it has.
TEST(MemoryCheck, AdviceSaysWhenItTakesMoreHosts) {
  HostMemory memory = host_with(static_cast<std::int64_t>(0.97 * planned_memory(config_of(1000)).total()));
  const auto refused = [&] {
    try {
      check_memory({config_of(1000)}, {memory});
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_NE(refused().find("workers on more hosts with --batch-size "), std::string::npos) << refused();
  memory.free.limit = perf::FreeMemory::Limit::process;
  EXPECT_NE(refused().find("workers with --batch-size "), std::string::npos) << refused();
}

TEST(MemoryCheck, AdviceLeavesRoomForEvaluation) {
  StepConfig evaluation = config_of(2000);
  evaluation.options.forward_only = true;
  const double beside = planned_memory(evaluation).total();
  HostMemory memory = host_with(static_cast<std::int64_t>(1.01 * beside));
  memory.free.limit = perf::FreeMemory::Limit::process;
  try {
    check_memory({config_of(1000), evaluation}, {memory});
    FAIL() << "not refused";
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()).find("--parallel"), std::string::npos) << error.what();
  }
}

TEST(MemoryCheck, TheLimitOfAGroupIsNamed) {
  HostMemory memory = host_with(8 * kGB);
  memory.free.limit = perf::FreeMemory::Limit::group;
  const std::string message = refusal(kNeed, memory);
  EXPECT_NE(message.find("8.0 GB is available under the limit of the control group (cgroup);"), std::string::npos)
      << message;
}

TEST(MemoryCheck, WhatCanBeSwappedIsWarnedOf) {
  HostMemory memory = host_with(8 * kGB);
  memory.free.swap_bytes = 5 * kGB;
  const std::string warning = check_memory(kNeed, memory, config_of(100));
  EXPECT_NE(warning.find("8.0 GB is available: the rest will be swapped to disk"), std::string::npos) << warning;
}

TEST(MemoryCheck, ANetworkIsPlannedWhereItMightNotFit) {
  EXPECT_TRUE(check_memory({config_of(10)}, {host_with(1000 * kGB)}).empty());
  EXPECT_THROW(check_memory({config_of(1000)}, {host_with(10'000'000)}), Error);
  EXPECT_THROW(check_memory({config_of(1000)}, {host_with(1000 * kGB), host_with(10'000'000)}), Error)
      << "on any of the hosts";
}

}  // namespace
}  // namespace trireme::train
