// The memory of a pipeline's workers, in real processes: it is as planned, and what does not fit one process trains as
// a pipeline under the same limit.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "tests/cli/run_command.hpp"
#include "tests/distributed/bench_record.hpp"
#include "tests/distributed/launched_job.hpp"
#include "tests/support/temporary_folder.hpp"

namespace trireme::testkit {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

class PipelineMemory : public testing::Test {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "sanitizers take memory of their own";
#endif
  }
  // Kernels of known scratch memory, one thread.
  static Words bench(const Words& options) {
    Words words{"bench", "--num-batches",       "2", "--num-warmup-batches", "1", "--autotune",
                "off",   "--num-intra-threads", "1"};
    words.insert(words.end(), options.begin(), options.end());
    return words;
  }
  static Words launched(int workers, const Words& command) {
    Words words{"launch", "--workers", std::to_string(workers), "--oversubscribe", "--"};
    words.insert(words.end(), command.begin(), command.end());
    return words;
  }
  // Under `ulimit -v`, which its workers inherit.
  static CommandResult run_limited(int kilobytes, const Words& arguments) {
    Words words{"/bin/sh", "-c", "ulimit -v " + std::to_string(kilobytes) + R"( && exec "$0" "$@")", TRIREME_BINARY};
    words.insert(words.end(), arguments.begin(), arguments.end());
    return run_command(words, {.timeout = 120s});
  }

  TemporaryFolder folder_;
};

TEST_F(PipelineMemory, IsAsPlanned) {
  const std::string path = folder_ / "record.json";
  const CommandResult result =
      run_trireme(launched(2, bench({"--model", "resnet29_v2", "--batch-size", "160", "--micro-batches", "4",
                                     "--schedule", "gpipe", "--parallel", "pipeline:2", "--record", path})),
                  {.timeout = 120s});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const CommandResult plan =
      run_trireme({"models", "--model", "resnet29_v2", "--plan", "--stages", "2", "--batch-size", "160",
                   "--micro-batches", "4", "--schedule", "gpipe", "--autotune", "off", "--json"});
  ASSERT_EQ(plan.exit_code, 0) << plan.err;
  const json memory = read_record(path)["results"]["memory"], stages = json::parse(plan.out)["parts"];
  ASSERT_EQ(memory.size(), 2u);
  for (std::size_t rank = 0; rank < 2; ++rank) {
    const auto planned = memory[rank]["planned_bytes"].get<double>();
    EXPECT_GT(planned, 200e6) << "too little to compare";
    EXPECT_EQ(stages[rank]["memory_bytes"].get<double>(), planned);
    // Programs, kernels and messages on their way take some 20 MB more.
    EXPECT_NEAR(memory[rank]["used_bytes"].get<double>() / planned, 1, 0.05) << "rank " << rank;
  }
}

// Plans that need too much are recorded with that; the chosen one saves memory and runs.
TEST_F(PipelineMemory, RecomputationIsChosenIfNothingElseFits) {
  const std::string path = folder_ / "record.json";
  const CommandResult result =
      run_trireme(launched(2, bench({"--model", "resnet29_v2", "--batch-size", "32", "--parallel", "auto",
                                     "--memory-limit", "0.035", "--record", path})),
                  {.timeout = 120s});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const json record = read_record(path);
  int chosen = 0, too_large = 0;
  for (const json& plan : record["plans"]) {
    const bool is_chosen = plan.value("chosen", false), has_problem = plan.contains("problem");
    EXPECT_FALSE(is_chosen && has_problem);
    if (has_problem) {
      EXPECT_NE(plan["problem"].get<std::string>().find("of memory"), std::string::npos);
    }
    too_large += has_problem ? 1 : 0;
    if (!is_chosen) continue;
    ++chosen;
    EXPECT_EQ(plan["recompute"], record["config"]["recompute"]);
    EXPECT_LE(plan["memory_bytes"].get<double>(), 35e6);
  }
  EXPECT_EQ(chosen, 1);
  EXPECT_GE(too_large, 1);
}

// Only stages divide variables. Parts and order are those of measurements, which the workers have to agree on.
TEST_F(PipelineMemory, PlansOfEachScheduleRun) {
  for (const char* schedule : {"zb-h1", "interleaved"}) {
    const CommandResult result =
        run_trireme(launched(2, bench({"--model", "alexnet", "--batch-size", "4", "--parallel", "auto", "--schedule",
                                       schedule, "--micro-batches", "4", "--memory-limit", "0.7"})),
                    {.timeout = 120s});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_NE(result.out.find(std::string("4 micro-batches of 2, schedule ") + schedule), std::string::npos)
        << result.out;
  }
}

TEST_F(PipelineMemory, WhatDoesNotFitOneProcessTrainsAsAdvised) {
  constexpr int kLimit = 1'200'000;
  const CommandResult refused = run_limited(kLimit, bench({"--model", "resnet110_v2", "--batch-size", "64"}));
  EXPECT_EQ(refused.exit_code, 2) << refused.err;
  EXPECT_NE(refused.err.find("is available under `ulimit`"), std::string::npos) << refused.err;
  std::smatch advice;
  const std::regex form(R"(; (\d+) workers with (--batch-size \d+ --parallel pipeline:\d+) would fit)");
  ASSERT_TRUE(std::regex_search(refused.err, advice, form)) << refused.err;
  Words options{"--model", "resnet110_v2"};
  std::istringstream words(advice[2]);
  for (std::string word; words >> word;) options.push_back(word);
  const CommandResult trained = run_limited(kLimit, launched(std::stoi(advice[1]), bench(options)));
  EXPECT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_NE(trained.out.find("total images/sec"), std::string::npos) << trained.out;
}

}  // namespace
}  // namespace trireme::testkit
