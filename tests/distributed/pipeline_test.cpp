// `trireme train --parallel` on real processes: the checkpoints are those of one process that accumulates the same
// micro-batches, to the bit, and either can go on with the other's. If TRIREME_TESTED_BACKEND is cuda, on a GPU that
// all share.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/cli/run_command.hpp"
#include "tests/distributed/launched_job.hpp"
#include "tests/support/temporary_folder.hpp"
#include "trireme/backend/registry.hpp"
#include "trireme/comm/world.hpp"
#include "trireme/train/checkpoint.hpp"

namespace trireme::testkit {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

bool has_protocol(const std::string& protocol) {
  if (protocol == "grpc+ucx" && !comm::has_transport("UCX")) return false;
  return comm::has_transport(protocol == "mpi" ? "MPI" : "gRPC");
}

class PipelineWorkers : public testing::Test {
 protected:
  void SetUp() override {
    if (on_gpu() && std::ranges::count(backend_names(), "cuda") == 0) GTEST_SKIP() << "there is no GPU";
    const Words make{"data", "make", "--out", folder_ / "digits", "--samples", "96", "--validation-samples", "30"};
    ASSERT_EQ(run_trireme(make).exit_code, 0);
  }

  static bool on_gpu() {
    const char* const named = std::getenv("TRIREME_TESTED_BACKEND");
    return named != nullptr && std::string(named) == "cuda";
  }

  // Deterministic, of a small network, in a folder of its own, if nothing else is given.
  Words training(const std::string& name, const Words& options) const {
    Words words{"train", "--deterministic", "--num-intra-threads", "1", "--record", folder_ / (name + ".json")};
    const auto add = [&](const std::string& option, const std::string& value) {
      if (std::ranges::find(options, option) == options.end()) words.insert(words.end(), {option, value});
    };
    add("--model", "mnist");
    add("--data-dir", folder_ / "digits");
    if (saves_) add("--checkpoint-dir", folder_ / name);
    if (on_gpu()) words.insert(words.end(), {"--device", "cuda"});
    words.insert(words.end(), options.begin(), options.end());
    return words;
  }

  std::string alone(const std::string& name, int micro_batches, const Words& more = {}) {
    Words options{"--batch-size", std::to_string(batch_ / micro_batches), "--accumulate",
                  std::to_string(micro_batches)};
    options.insert(options.end(), more.begin(), more.end());
    const CommandResult result = run_trireme(training(name, options));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return last_checkpoint(name);
  }

  std::string pipeline(const std::string& name, int workers, const Words& more, int runs = 1) {
    Words words{"--workers", std::to_string(workers), "--oversubscribe", "--"};
    Words options{"--batch-size", std::to_string(batch_ / workers / runs)};
    options.insert(options.end(), more.begin(), more.end());
    const Words command = training(name, options);
    words.insert(words.end(), command.begin(), command.end());
    LaunchedJob job(words);
    EXPECT_EQ(job.exit_code(100s), 0) << job.err() << job.out();
    EXPECT_NE(job.out().find("top-1"), std::string::npos) << job.out();
    return last_checkpoint(name);
  }

  std::string last_checkpoint(const std::string& name) const {
    const auto paths = train::list_checkpoints(folder_ / name);
    return paths.empty() ? "" : paths.back();
  }

  static void expect_equal(const std::string& a, const std::string& b, const std::string& what) {
    ASSERT_FALSE(a.empty() || b.empty()) << what;
    const train::SafetensorsFile first(a), second(b);
    ASSERT_EQ(first.names(), second.names()) << what;
    for (const std::string& name : first.names()) {
      EXPECT_TRUE(std::ranges::equal(first.read(name).f32(), second.read(name).f32())) << what << ": " << name;
    }
  }

  json record(const std::string& name) const {
    std::ifstream file(folder_ / (name + ".json"));
    return json::parse(file);
  }

  TemporaryFolder folder_;
  int batch_ = 24;  // of all workers
  bool saves_ = true;
};

TEST_F(PipelineWorkers, GiveTheBitsOfOneProcess) {
  const std::string one = alone("one", 4);
  for (const char* schedule : {"gpipe", "1f1b", "zb-h1"}) {
    const std::string name = std::string("two-") + schedule;
    expect_equal(pipeline(name, 2, {"--parallel", "pipeline:2", "--micro-batches", "4", "--schedule", schedule}), one,
                 name);
  }
  EXPECT_EQ(record("two-gpipe")["epochs"][0]["loss"], record("one")["epochs"][0]["loss"]);
  EXPECT_EQ(record("two-gpipe")["epochs"][0]["top1"], record("one")["epochs"][0]["top1"]);
  EXPECT_EQ(record("two-gpipe")["pipeline"]["schedule"], "gpipe");
}

class PipelineTransports : public PipelineWorkers, public testing::WithParamInterface<const char*> {};

// Two stages with every schedule; more, each with another one.
TEST_P(PipelineTransports, GiveTheBitsOfOneProcess) {
  if (!has_protocol(GetParam())) GTEST_SKIP() << "this build has no " << GetParam();
  struct Case {
    const char* model;
    int stages;
    const char* schedule;
  };
  std::vector<Case> cases;
  for (const char* schedule : {"gpipe", "1f1b", "interleaved", "zb-h1"}) {
    for (const char* model : {"mnist", "resnet20"}) cases.push_back({model, 2, schedule});
  }
  cases.push_back({"mnist", 3, "zb-h1"});
  cases.push_back({"resnet20", 3, "1f1b"});
  cases.push_back({"resnet20", 4, "interleaved"});
  const std::map<std::string, std::string> one{{"mnist", alone("mnist", 4, {"--model", "mnist"})},
                                               {"resnet20", alone("resnet20", 4, {"--model", "resnet20"})}};
  for (const Case& each : cases) {
    const std::string name = fmt::format("{}-{}-{}", each.model, each.stages, each.schedule);
    expect_equal(pipeline(name, each.stages,
                          {"--model", each.model, "--parallel", fmt::format("pipeline:{}", each.stages),
                           "--micro-batches", "4", "--schedule", each.schedule, "--protocol", GetParam()}),
                 one.at(each.model), name);
  }
}

INSTANTIATE_TEST_SUITE_P(Protocols, PipelineTransports, testing::Values("grpc", "grpc+ucx", "mpi"),
                         [](const auto& each) {
                           std::string name = each.param;
                           std::erase(name, '+');
                           return name;
                         });

struct LargeNetwork {
  const char *model, *schedule, *protocol;
};
void PrintTo(const LargeNetwork& network, std::ostream* stream) { *stream << network.model; }

class LargePipelineWorkers : public PipelineWorkers, public testing::WithParamInterface<LargeNetwork> {};

// The loss of the second step depends on all that the first one computed. Without checkpoints, which would be large.
TEST_P(LargePipelineWorkers, GiveTheLossesOfOneProcess) {
  const LargeNetwork& network = GetParam();
  if (!has_protocol(network.protocol)) GTEST_SKIP() << "this build has no " << network.protocol;
  const Words make{"data", "make", "--out", folder_ / "few", "--samples", "4", "--validation-samples", "2"};
  ASSERT_EQ(run_trireme(make).exit_code, 0);
  batch_ = 3;
  saves_ = false;
  const Words common{"--model", network.model, "--data-dir", folder_ / "few", "--epochs", "1", "--autotune", "off"};
  Words staged = common;
  staged.insert(staged.end(), {"--parallel", "pipeline:3", "--micro-batches", "3", "--schedule", network.schedule,
                               "--protocol", network.protocol});
  alone("one", 3, common);
  pipeline("stages", 3, staged);
  for (const char* figure : {"loss", "top5"}) {
    EXPECT_EQ(record("stages")["epochs"][0][figure], record("one")["epochs"][0][figure]);
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, LargePipelineWorkers,
                         testing::Values(LargeNetwork{"resnet29_v2", "zb-h1", "grpc"},
                                         LargeNetwork{"googlenet", "1f1b", "grpc+ucx"},
                                         LargeNetwork{"vgg11", "gpipe", "mpi"}),
                         [](const auto& each) { return each.param.model; });

TEST_F(PipelineWorkers, GoOnWithACheckpointOfOneProcessAndTheOtherWayRound) {
  const std::string whole = alone("whole", 4, {"--epochs", "2"});
  alone("first", 4, {"--epochs", "1"});
  expect_equal(pipeline("first", 2, {"--parallel", "pipeline:2", "--micro-batches", "4", "--epochs", "2", "--resume"}),
               whole, "a pipeline after one process");
  pipeline("second", 2, {"--parallel", "pipeline:2", "--micro-batches", "4", "--epochs", "1"});
  expect_equal(alone("second", 4, {"--epochs", "2", "--resume"}), whole, "one process after a pipeline");
}

// Kernels that are chosen by timing, by the first worker for all; and one stage alone.
TEST_F(PipelineWorkers, RunWithKernelsChosenByTiming) {
  for (const int stages : {1, 2}) {
    LaunchedJob job({"--workers", std::to_string(stages), "--oversubscribe", "--", "bench", "--model", "resnet20",
                     "--batch-size", "8", "--num-batches", "3", "--num-warmup-batches", "1", "--parallel",
                     "pipeline:" + std::to_string(stages), "--tune-cache", folder_ / "timings.json", "--device",
                     on_gpu() ? "cuda" : "cpu"});
    EXPECT_EQ(job.exit_code(100s), 0) << job.err() << job.out();
    EXPECT_NE(job.out().find("micro-batches of"), std::string::npos) << job.out();
  }
}

// Replicas of a stage take turns with the micro-batches, as workers do with batches.
TEST_F(PipelineWorkers, WithReplicasGiveTheBitsOfAsManyWorkers) {
  const std::string workers = pipeline("workers", 2, {"--accumulate", "2"}, 2);
  const std::string hybrid =
      pipeline("hybrid", 4, {"--parallel", "pipeline:2", "--micro-batches", "4", "--all-reduce", "ring"});
  expect_equal(hybrid, workers, "two stages of two workers");
}

// A tree sums the gradients of three workers in the order in which one process accumulates them.
TEST_F(PipelineWorkers, ThreeForTheFirstStageGiveTheBitsOfOneProcess) {
  const std::string one = alone("one", 3);
  expect_equal(pipeline("three", 3, {"--all-reduce", "tree"}), one, "three workers");
  for (const char* schedule : {"1f1b", "zb-h1"}) {
    const std::string name = std::string("hybrid-") + schedule;
    expect_equal(
        pipeline(name, 4,
                 {"--all-reduce", "tree", "--parallel", "hybrid:3-1", "--micro-batches", "3", "--schedule", schedule}),
        one, name);
  }
}

// Batch norm's running statistics take all micro-batches in order, although each worker of a stage sees only some. The
// workers' shares and gradients are summed in another order: after some steps they differ by 3e-6, or 5e-5 with the
// sanitizers' kernels; without this rule by 0.2.
TEST_F(PipelineWorkers, WithReplicasHaveTheRunningStatisticsOfOneProcess) {
  const train::SafetensorsFile one(alone("one", 6, {"--model", "resnet20"}));
  for (const char* parallel : {"hybrid:3-1", "hybrid:1-3"}) {
    const train::SafetensorsFile hybrid(
        pipeline(parallel, 4, {"--model", "resnet20", "--parallel", parallel, "--micro-batches", "6"}));
    ASSERT_EQ(hybrid.names(), one.names());
    int statistics = 0;
    for (const std::string& name : one.names()) {
      if (name.find("/running_") == std::string::npos) continue;
      ++statistics;
      const HostTensor expected = one.read(name), actual = hybrid.read(name);
      for (std::size_t i = 0; i < expected.f32().size(); ++i)
        ASSERT_NEAR(actual.f32()[i], expected.f32()[i], 1e-3 * std::abs(expected.f32()[i]) + 1e-4)
            << parallel << " " << name;
    }
    EXPECT_GT(statistics, 30);
  }
}

// With batch norm. The sums of gradients have another order than in one process.
TEST_F(PipelineWorkers, OfTwoStagesOfTwoTrainLikeOneProcess) {
  const Words network{"--model", "resnet20", "--epochs", "0.25"};
  Words hybrid = network;
  hybrid.insert(hybrid.end(), {"--parallel", "pipeline:2", "--micro-batches", "4"});
  const train::SafetensorsFile one(alone("one", 4, network)), four(pipeline("four", 4, hybrid));
  for (const std::string& name : one.names()) {
    if (name.find("/running_") != std::string::npos) continue;  // the test above
    const HostTensor expected = one.read(name), trained = four.read(name);
    for (std::size_t i = 0; i < expected.f32().size(); ++i) {
      ASSERT_NEAR(trained.f32()[i], expected.f32()[i], 1e-5) << name << " at " << i;
    }
  }
}

// Trained with a plan of their own choice, and told why.
TEST_F(PipelineWorkers, ChooseAPlanByThemselves) {
  LaunchedJob job({"--workers", "2", "--oversubscribe", "--", "bench", "--model", "mnist", "--batch-size", "8",
                   "--num-batches", "3", "--num-warmup-batches", "1", "--parallel", "auto", "--tune-cache",
                   folder_ / "timings.json", "--record", folder_ / "auto.json"});
  EXPECT_EQ(job.exit_code(100s), 0) << job.err() << job.out();
  EXPECT_NE(job.out().find("speeds relative to data: data 1.00"), std::string::npos) << job.out();
  EXPECT_NE(job.out().find("predicted: "), std::string::npos) << job.out();
  const json written = record("auto");
  EXPECT_EQ(written["config"]["parallel"], "auto");
  EXPECT_GE(written["plans"].size(), 2u);
  int chosen = 0;
  for (const json& plan : written["plans"]) {
    EXPECT_GT(plan["images_per_second"].get<double>(), 0);
    EXPECT_EQ(plan.contains("stages"), plan["parallel"] != "data");
    if (!plan.value("chosen", false)) continue;
    ++chosen;
    EXPECT_EQ(written.contains("pipeline"), plan["parallel"] != "data");
  }
  EXPECT_EQ(chosen, 1);
}

TEST_F(PipelineWorkers, WhatDoesNotFitIsRefusedWithAPipelineThatDoes) {
  const Words options{"bench", "--model",       "resnet110", "--batch-size", "64", "--memory-limit",
                      "0.4",   "--num-batches", "2"};
  const CommandResult alone = run_trireme(options);
  EXPECT_EQ(alone.exit_code, 2) << alone.err;
  EXPECT_NE(alone.err.find("under --memory-limit"), std::string::npos) << alone.err;
  EXPECT_NE(alone.err.find("--parallel pipeline:"), std::string::npos) << alone.err;
}

TEST_F(PipelineWorkers, RefuseWhatStagesCannotDo) {
  const auto refused = [&](const Words& options) {
    Words words{"launch", "--workers", "2", "--oversubscribe", "--"};
    const Words command = training("refused", options);
    words.insert(words.end(), command.begin(), command.end());
    const CommandResult result = run_trireme(words);
    EXPECT_EQ(result.exit_code, 2) << result.err;
    return result.err;
  };
  EXPECT_NE(refused({"--parallel", "pipeline:3"}).find("2 workers cannot be divided evenly over 3 stages"),
            std::string::npos);
  EXPECT_NE(refused({"--parallel", "hybrid:2-1"}).find("its stages have 3 workers, but there are 2"),
            std::string::npos);
  EXPECT_NE(refused({"--parallel", "tensor"}).find("allowed are data, pipeline:STAGES"), std::string::npos);
  EXPECT_NE(refused({"--micro-batches", "4"}).find("no effect without a pipeline"), std::string::npos);
  EXPECT_NE(refused({"--parallel", "auto"}).find("--deterministic and --parallel auto"), std::string::npos);
  EXPECT_NE(refused({"--parallel", "pipeline:2", "--micro-batches", "7", "--batch-size", "12"})
                .find("these numbers fit: 1, 2, 3, 4, 6"),
            std::string::npos);
  const std::string file = folder_ / "stages.json";
  std::ofstream(file) << R"({"stages": [{"replicas": "2"}]})";
  EXPECT_NE(refused({"--parallel", file}).find("replicas: \"2\" in a stage"), std::string::npos);
  EXPECT_NE(refused({"--parallel", "pipeline:2", "--clip-norm", "1"}).find("cannot be used together"),
            std::string::npos);
}

}  // namespace
}  // namespace trireme::testkit
