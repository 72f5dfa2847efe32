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
constexpr MemoryNeed kNeed{.activations = 9e9, .values = 1e9, .gradients = 0.5e9, .state = 0.5e9, .batches = 1e9};

HostMemory host_with(std::int64_t bytes, int workers = 1) {
  HostMemory memory{.host = "node1", .free = {.bytes = bytes, .swap_bytes = 0}};
  for (int rank = 1; rank < workers; ++rank) memory.ranks.push_back(rank);
  return memory;
}

std::string refusal(const std::vector<MemoryNeed>& needs, const HostMemory& memory) {
  try {
    check_memory(needs, memory, {.step = config_of(100)});
  } catch (const Error& error) {
    EXPECT_EQ(static_cast<int>(error.kind()), static_cast<int>(ErrorKind::bad_input));
    return error.what();
  }
  return "";
}

TEST(MemoryCheck, WhatFitsIsNotSpokenOf) {
  EXPECT_EQ(check_memory({kNeed}, host_with(12 * kGB), {.step = config_of(100)}), "");
}

TEST(MemoryCheck, WhatDoesNotFitIsRefusedWithWhatWould) {
  const std::string message = refusal({kNeed}, host_with(8 * kGB));
  EXPECT_EQ(
      message.find("--batch-size 100: 12.0 GB of memory is needed (activations and scratch 9.0 GB, variables with "
                   "gradients and optimizer state 2.0 GB, batches of input 1.0 GB), but 8.0 GB is available; about "
                   "60 images fit; --recompute cheap or full uses less; 2 workers with --batch-size 50 --parallel "
                   "pipeline:2 would fit: "),
      0U)
      << message;
  EXPECT_NE(refusal({kNeed}, host_with(kGB)).find("not even one image fits"), std::string::npos);
}

TEST(MemoryCheck, TheWorkersOfAHostNeedItTogether) {
  const std::string message = refusal({kNeed, kNeed}, host_with(14 * kGB, 2));
  EXPECT_NE(message.find("12.0 GB of memory is needed for each of 2 workers on node1"), std::string::npos) << message;
  EXPECT_NE(message.find("but 7.0 GB is available for each; "), std::string::npos) << message;
  EXPECT_NE(message.find("about 50 images fit"), std::string::npos) << message;
}

// More workers on this host would share what it has.
TEST(MemoryCheck, AdviceSaysWhenItTakesMoreHosts) {
  HostMemory memory =
      host_with(static_cast<std::int64_t>(0.3 * planned_memory({.step = config_of(1000)}).front().total()));
  const auto refused = [&] {
    try {
      check_memory({.step = config_of(1000)}, {memory});
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
  const double beside = planned_memory({.step = evaluation}).front().total();
  HostMemory memory = host_with(static_cast<std::int64_t>(1.01 * beside));
  memory.free.limit = perf::FreeMemory::Limit::process;
  try {
    check_memory({.step = config_of(1000), .beside = {evaluation}}, {memory});
    FAIL() << "not refused";
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()).find("--parallel"), std::string::npos) << error.what();
  }
}

StepConfig pipeline_of_mnist(int micro_batches = 4) {
  StepOptions options;
  options.model = "mnist";
  options.batch_size = 8;
  options.autotune = "off";
  options.distribution.parallel = "pipeline:2";
  options.distribution.micro_batches = micro_batches;
  return resolve(options, {.workers = 2});
}

// It brings together what the stages have, to evaluate it and to save it, and nobody else does.
TEST(MemoryCheck, TheFirstWorkerOfAPipelineNeedsMore) {
  const StepConfig step = pipeline_of_mnist();
  const std::vector<MemoryNeed> plain = planned_memory({.step = step});
  ASSERT_EQ(plain.size(), 2U);
  StepConfig evaluation = step;
  evaluation.options.forward_only = true;
  const MemoryUse evaluates{.step = step, .beside = {evaluation}};
  const double beside = planned_beside(evaluates).total();
  const std::vector<MemoryNeed> with_evaluation = planned_memory(evaluates);
  const double values = plain[0].values + plain[1].values, state = plain[0].state + plain[1].state;
  EXPECT_EQ(with_evaluation[0].total(), plain[0].total() + beside + values);
  EXPECT_EQ(with_evaluation[1].total(), plain[1].total() + plain[1].values);
  const std::vector<MemoryNeed> saving = planned_memory({.step = step, .saves = true});
  EXPECT_EQ(saving[0].total(), plain[0].total() + 2 * (values + state));
  EXPECT_EQ(saving[1].total(), plain[1].total() + plain[1].values + plain[1].state);
  const std::vector<MemoryNeed> alone = planned_memory({.step = config_of(8), .saves = true});
  EXPECT_EQ(alone[0].copies, 2 * (values + state));
}

TEST(MemoryCheck, WorkersOfAHostMayNeedDifferentMuch) {
  MemoryNeed less = kNeed;
  less.activations = 1e9;
  EXPECT_TRUE(host_with(16 * kGB, 2).has_room_for({kNeed, less}));
  const std::string message = refusal({kNeed, less}, host_with(15 * kGB, 2));
  EXPECT_NE(message.find("12.0 GB of memory is needed for rank 0 of the 2 workers on node1, which need 16.0 GB in all"),
            std::string::npos)
      << message;
  HostMemory limited = host_with(16 * kGB, 2);
  limited.free.limit = perf::FreeMemory::Limit::process;
  EXPECT_NE(refusal({kNeed, less}, limited).find("but 8.0 GB is available for each under `ulimit`"), std::string::npos);
}

TEST(MemoryCheck, NothingIsRefusedIfTheSystemDoesNotSayWhatThereIs) {
  EXPECT_TRUE(host_with(0).has_room_for({kNeed}));
  EXPECT_TRUE(fits({.step = config_of(1000)}, {host_with(0)}));
}

TEST(MemoryCheck, TheLimitOfAGroupIsNamed) {
  HostMemory memory = host_with(8 * kGB);
  memory.free.limit = perf::FreeMemory::Limit::group;
  const std::string message = refusal({kNeed}, memory);
  EXPECT_NE(message.find("8.0 GB is available under the limit of the control group (cgroup);"), std::string::npos)
      << message;
}

TEST(MemoryCheck, WhatCanBeSwappedIsWarnedOf) {
  HostMemory memory = host_with(8 * kGB);
  memory.free.swap_bytes = 5 * kGB;
  const std::string warning = check_memory({kNeed}, memory, {.step = config_of(100)});
  EXPECT_NE(warning.find("8.0 GB is available: the rest will be swapped to disk"), std::string::npos) << warning;
}

TEST(MemoryCheck, ANetworkIsPlannedWhereItMightNotFit) {
  EXPECT_TRUE(check_memory({.step = config_of(10)}, {host_with(1000 * kGB)}).empty());
  EXPECT_THROW(check_memory({.step = config_of(1000)}, {host_with(10'000'000)}), Error);
  EXPECT_THROW(check_memory({.step = config_of(1000)}, {host_with(1000 * kGB), host_with(10'000'000)}), Error)
      << "on any of the hosts";
}

}  // namespace
}  // namespace trireme::train
