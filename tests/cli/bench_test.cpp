#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/cli/run_command.hpp"
#include "tests/support/temporary_folder.hpp"
#include "trireme/perf/machine.hpp"

namespace trireme::testkit {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

class Bench : public ::testing::Test {
 protected:
  std::string record_path() const { return folder_ / "record.json"; }
  Json record() const {
    std::ifstream file(record_path());
    return Json::parse(file);
  }
  bool folder_is_empty() const { return fs::is_empty(folder_.path()); }

  TemporaryFolder folder_;
};

CommandResult bench(std::vector<std::string> options, const CommandOptions& command_options = {}) {
  std::vector<std::string> arguments{"bench", "--model",  "mnist", "--batch-size", "4", "--num-intra-threads",
                                     "1",     "--no-bind"};
  arguments.insert(arguments.end(), options.begin(), options.end());
  return run_trireme(arguments, command_options);
}

void expect_one_line(const CommandResult& result, const std::string& part) {
  EXPECT_EQ(result.exit_code, 2) << result.err;
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  EXPECT_NE(result.err.find(part), std::string::npos) << "expected '" << part << "' in: " << result.err;
}

TEST_F(Bench, PrintsBannerStepLinesAndTotal) {
  // Either way of writing an option; with tuning, stderr would say that kernels are timed.
  const CommandResult result = bench({"--num_batches=20", "--num-warmup-batches", "1", "--autotune", "off"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  for (const char* part :
       {"Trireme ", "Model:", "mnist", "Batch size:", "4 global = 4 per worker", "Optimizer:", "Seed:", "total_loss",
        "\n1\timages/sec: ", "\n10\timages/sec: ", "\n20\timages/sec: ", " +/- ",
        "(jitter = ", "total images/sec: ", "(global, 1 worker)", "GFLOP/s", " % of the peak: ", "peak memory:"}) {
    EXPECT_NE(result.out.find(part), std::string::npos) << part << " is not in\n" << result.out;
  }
  EXPECT_EQ(result.out.find("Peak:"), std::string::npos) << "one that was measured earlier may be another:\n"
                                                         << result.out;
}

TEST_F(Bench, WritesATraceThatReportReads) {
  const std::string trace = folder_ / "trace.json";
  const CommandResult result =
      bench({"--num-batches", "4", "--num-warmup-batches", "1", "--trace", trace, "--trace-steps", "2"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("trace: " + trace), std::string::npos) << result.out;
  const CommandResult report = run_trireme({"report", "--trace", trace, "--operations", "3"});
  ASSERT_EQ(report.exit_code, 0) << report.err;
  for (const char* part :
       {"where the time of a step goes", "rank 0 on ", "critical path", "operations, the longest 3 of "}) {
    EXPECT_NE(report.out.find(part), std::string::npos) << part << " is not in\n" << report.out;
  }
  expect_one_line(run_trireme({"report", "--trace", folder_ / "none.json"}), "none.json");
  expect_one_line(bench({"--trace", "/dev/null"}), "cannot write '/dev/null': it is a device or a pipe");
  expect_one_line(bench({"--trace", folder_ / "none/trace.json"}), "none/trace.json");
  expect_one_line(bench({"--trace", trace, "--trace-steps", "0"}), "--trace-steps 0");
}

TEST_F(Bench, BadInputGetsOneLineAndExitCode2) {
  expect_one_line(run_trireme({"bench", "--model", "resnet51"}), "resnet50");
  expect_one_line(run_trireme({"bench", "--batch-size", "0"}), "--batch-size 0");
  expect_one_line(run_trireme({"bench", "--batch-size", "many"}), "batch-size");
  expect_one_line(run_trireme({"bench", "--init-learning-rate", "nan"}), "--init-learning-rate nan");
  expect_one_line(run_trireme({"bench", "--init-learning-rate", "1e39"}), "--init-learning-rate 1e+39");
  expect_one_line(run_trireme({"bench", "--init-learning-rate", "1e-60"}), "--init-learning-rate 1e-60");
  expect_one_line(run_trireme({"bench", "--piecewise-learning-rate-schedule", "0.1;2"}), "0.1;2");
  expect_one_line(run_trireme({"bench", "--num-intra-threads", "4000"}), "4000");
  expect_one_line(run_trireme({"bench", "--no-such-option"}), "--no-such-option");
  expect_one_line(run_trireme({"bench", "--recompute", "some"}), "--recompute some: must be one of none, cheap, full");
  expect_one_line(run_trireme({"bench", "--recompute", "full", "--forward-only"}), "--recompute full has no effect");
}

TEST_F(Bench, RecomputationTradesWorkForMemoryAndSaysSo) {
  const CommandResult result = run_trireme({"bench", "--model", "resnet20", "--batch-size", "2", "--num-batches", "1",
                                            "--num-warmup-batches", "0", "--num-intra-threads", "1", "--no-bind",
                                            "--autotune", "off", "--recompute", "full", "--record", record_path()});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  for (const char* part : {"\nRecomputation: ", "full: ", " operations run again", " % more flops", " instead of "}) {
    EXPECT_NE(result.out.find(part), std::string::npos) << part << " is not in\n" << result.out;
  }
  EXPECT_EQ(record()["config"]["recompute"], "full");
}

TEST_F(Bench, WhatThisBuildLacksIsSaid) {
  expect_one_line(run_trireme({"bench", "--data-dir", "/no/data"}), "/no/data");
  expect_one_line(run_trireme({"bench", "--device", "tpu"}), "must be cpu, cuda, or one GPU of several");
  expect_one_line(run_trireme({"bench", "--variable-update", "parameter_server"}),
                  "--variable-update parameter_server needs parameter servers: trireme launch --ps N");
}

// Exit code 3 whether the build lacks CUDA or the machine a GPU. Where there are GPUs, the number is wrong.
TEST_F(Bench, WithoutAGpuTheExitCodeSaysThatSomethingIsMissing) {
  const CommandResult result = run_trireme({"bench", "--device", "cuda:99", "--num-batches", "1"});
  const bool has_gpu = result.err.find("counted from 0") != std::string::npos;
  EXPECT_EQ(result.exit_code, has_gpu ? 2 : 3) << result.err;
  EXPECT_NE(result.err.find("--device cuda"), std::string::npos) << result.err;
  EXPECT_EQ(result.out, "");
}

TEST_F(Bench, APrecisionThatIsNotFastHereIsRefused) {
  expect_one_line(run_trireme({"bench", "--precision", "tf32"}), "needs a GPU: --device cuda");
  expect_one_line(run_trireme({"bench", "--precision", "bf16", "--backend", "reference"}), "use --precision fp32");
  expect_one_line(run_trireme({"bench", "--precision", "fp8"}), "must be one of fp32, tf32, bf16, fp16");
}

TEST_F(Bench, UnwritableRecordIsRefusedBeforeTheRun) {
  expect_one_line(bench({"--record", folder_ / "no/record.json"}), "cannot write the record");
  expect_one_line(bench({"--record", folder_.path().string()}), "is a directory");
  expect_one_line(bench({"--record", folder_ / std::string(300, 'x')}), "cannot write the record");
  EXPECT_TRUE(folder_is_empty());
}

TEST_F(Bench, WritesTheRecord) {
  const CommandResult result =
      bench({"--num-batches", "3", "--num-warmup-batches", "0", "--repeats", "2", "--record", record_path()});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json json = record();
  EXPECT_EQ(json["schema"], "trireme.run/1");
  EXPECT_EQ(json["command"][1], "bench");
  EXPECT_EQ(json["config"]["model"], "mnist");
  ASSERT_EQ(json["steps"][0].size(), 2u);
  EXPECT_EQ(json["steps"][0][1].size(), 3u);
  EXPECT_GT(json["results"]["images_per_second"], 0.0);
  EXPECT_FALSE(json.contains("error"));
}

TEST_F(Bench, RecordOnStdoutIsNotMixedWithText) {
  const CommandResult result = bench({"--num-batches", "2", "--num-warmup-batches", "0", "--record", "-"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(Json::parse(result.out)["steps"][0][0].size(), 2u);
  EXPECT_NE(result.err.find("total images/sec: "), std::string::npos);
}

TEST_F(Bench, InterruptEndsWithTotalsAndRecord) {
  CommandOptions options;
  options.signal = SIGINT;
  options.signal_after_output = "\n1\timages/sec";
  const CommandResult result =
      bench({"--num-batches", "100000000", "--num-warmup-batches", "0", "--record", record_path()}, options);
  EXPECT_EQ(result.exit_code, 130) << result.err;
  EXPECT_NE(result.out.find("interrupted: "), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("total images/sec: "), std::string::npos) << result.out;
  const Json json = record();
  EXPECT_EQ(json["interrupted"], true);
  EXPECT_GE(json["steps"][0][0].size(), 1u);
}

// Four times what there is: it is refused before kernels are timed, which would not help.
TEST_F(Bench, WhatDoesNotFitIntoMemoryIsRefused) {
  const double available = static_cast<double>(perf::free_memory().bytes + perf::free_memory().swap_bytes);
  constexpr double kBytesPerImage = 50e6;  // of ResNet-50's activations; in truth there are more
  const auto images = static_cast<std::int64_t>(4 * available / kBytesPerImage);
  CommandOptions own_cache;
  own_cache.environment = {"XDG_CACHE_HOME=" + (folder_ / "cache")};
  const CommandResult result =
      run_trireme({"bench", "--model", "resnet50", "--batch-size", std::to_string(images)}, own_cache);
  EXPECT_EQ(result.exit_code, 2) << result.err;
  EXPECT_NE(result.err.find(fmt::format("--batch-size {}: ", images)), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("of memory is needed"), std::string::npos) << result.err;
  EXPECT_NE(result.err.find(" images fit; --recompute cheap or full uses less"), std::string::npos) << result.err;
  EXPECT_EQ(result.err.find("timing the kernels"), std::string::npos) << result.err;
}

// Beside the timings lies the time of a step. Here it is made far longer, as if the machine had been busy.
TEST_F(Bench, KernelsAreTimedAgainAfterStepsThatContradictTheirTimings) {
  const std::string cache = folder_ / "tune.json";
  CommandOptions quiet;
  quiet.environment = {"TRIREME_LOAD=0"};
  const auto run = [&] {
    CommandResult result = bench({"--num-batches", "25", "--num-warmup-batches", "0", "--tune-cache", cache}, quiet);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result;
  };
  for (int round = 0; round < 2; ++round) {
    const CommandResult first = run();
    EXPECT_NE(first.out.find(" timed in "), std::string::npos) << first.out;
    EXPECT_EQ(first.err.find("timed again"), std::string::npos) << first.err;
    Json json = Json::parse(std::ifstream(cache));
    for (auto& [problem, entry] : json["entries"].items()) {
      if (problem.starts_with("step ")) entry["seconds"]["median"] = 1e3;
    }
    std::ofstream(cache) << json;
    const CommandResult second = run();
    EXPECT_NE(second.out.find("from earlier timings"), std::string::npos) << second.out;
    EXPECT_NE(second.err.find("kernels will be timed again next time"), std::string::npos) << second.err;
  }
}

TEST_F(Bench, FailureIsInTheRecord) {
  const CommandResult result = bench(
      {"--num-batches", "200", "--num-warmup-batches", "0", "--init-learning-rate", "1e30", "--record", record_path()});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.err.find("--init-learning-rate"), std::string::npos) << result.err;
  EXPECT_NE(record()["error"].get<std::string>().find("the loss of mnist is "), std::string::npos);
}

TEST_F(Bench, ProfileListsInstructionsAndOperations) {
  const CommandResult result =
      bench({"--num-batches", "2", "--num-warmup-batches", "0", "--profile", "--profile-rows", "3"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  for (const char* part : {"the 3 of", "implementation", "ms/step", "of peak", "By operation", "untracked"}) {
    EXPECT_NE(result.out.find(part), std::string::npos) << part << " is not in\n" << result.out;
  }
}

TEST_F(Bench, HelpNamesTheOptions) {
  const CommandResult result = run_trireme({"bench", "--help"});
  EXPECT_EQ(result.exit_code, 0);
  for (const char* part :
       {"--model", "--batch-size", "--num-batches", "--record", "--profile", "--num-intra-threads", "--ps-hosts"}) {
    EXPECT_NE(result.out.find(part), std::string::npos) << part;
  }
  EXPECT_EQ(result.out.find("--server-protocol"), std::string::npos);
}

}  // namespace
}  // namespace trireme::testkit
