// `trireme train` and `eval` as a user meets them, on data that `trireme data make` draws.
#include <gtest/gtest.h>
#include <signal.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "tests/cli/run_command.hpp"
#include "tests/support/libraries.hpp"
#include "tests/support/temporary_folder.hpp"
#include "trireme/train/checkpoint.hpp"

namespace trireme::testkit {
namespace {

using Words = std::vector<std::string>;
using nlohmann::json;

class Train : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    data_ = std::make_unique<TemporaryFolder>();
    const CommandResult made =
        run_trireme({"data", "make", "--out", *data_ / "digits", "--samples", "1500", "--validation-samples", "300"});
    ASSERT_EQ(made.exit_code, 0) << made.err;
  }
  static void TearDownTestSuite() { data_.reset(); }
  void SetUp() override {
    if (!has_library("oneDNN")) GTEST_SKIP() << "training takes minutes without oneDNN";
  }

  static Words train(const Words& options) {
    Words words{"train",        "--model", "mnist",      "--data-dir", *data_ / "digits",
                "--batch-size", "50",      "--autotune", "off",        "--init-learning-rate",
                "0.01"};
    words.insert(words.end(), options.begin(), options.end());
    return words;
  }
  static CommandResult run(const Words& options, CommandOptions how = {}) {
    how.timeout = std::chrono::seconds(110);
    return run_trireme(train(options), how);
  }
  static json read(const std::string& path) {
    std::ifstream file(path);
    return json::parse(file);
  }
  static void expect_same_tensors(const std::string& a, const std::string& b) {
    const train::SafetensorsFile first(a), second(b);
    ASSERT_EQ(first.names(), second.names());
    for (const std::string& name : first.names()) {
      const HostTensor x = first.read(name), y = second.read(name);
      EXPECT_TRUE(std::ranges::equal(x.i32(), y.i32())) << name;  // bits, whatever they mean
    }
  }

  static std::unique_ptr<TemporaryFolder> data_;
  TemporaryFolder folder_;
};

std::unique_ptr<TemporaryFolder> Train::data_;

TEST_F(Train, ANetworkLearnsAndItsCheckpointIsAsGoodAsItSaid) {
  Words options{"--epochs",         "3",     "--checkpoint-dir",  folder_ / "c",     "--record",
                folder_ / "r.json", "--csv", folder_ / "log.csv", "--display-every", "20"};
  const bool has_events = has_library("protobuf");
  if (has_events) options.insert(options.end(), {"--tensorboard", folder_ / "tb"});
  const CommandResult trained = run(options);
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const json record = read(folder_ / "r.json");
  ASSERT_EQ(record["epochs"].size(), 3u);
  EXPECT_EQ(record["epochs"][2]["step"], 90);
  const double top1 = record["epochs"][2]["top1"];
  EXPECT_GT(top1, 0.9) << trained.out;
  EXPECT_LT(record["epochs"][2]["loss"], record["epochs"][0]["loss"]);
  const json& curve = record["curve"];  // steps 1, 20, 40, 60 and 80 of 30 to an epoch
  ASSERT_EQ(curve.size(), 5u);
  for (std::size_t i = 0; i < curve.size(); ++i) {
    EXPECT_EQ(curve[i]["step"], i == 0 ? 1 : 20 * i);
    EXPECT_NEAR(curve[i]["epoch"].get<double>(), curve[i]["step"].get<double>() / 30, 1e-9);
    EXPECT_NEAR(curve[i]["learning_rate"].get<double>(), 0.01, 1e-9);
    EXPECT_GT(curve[i]["seconds"], i == 0 ? json(0) : curve[i - 1]["seconds"]);
  }
  EXPECT_LT(curve[4]["loss"], curve[1]["loss"]);
  EXPECT_EQ(record["checkpoint"], train::checkpoint_path(folder_ / "c", 90));

  std::ifstream csv(folder_ / "log.csv");
  std::string line;
  int lines = 0;
  while (std::getline(csv, line)) ++lines;
  EXPECT_EQ(lines, 4);
  EXPECT_TRUE(!has_events || !std::filesystem::is_empty(folder_ / "tb"));

  const CommandResult evaluated = run_trireme(
      {"eval", "--checkpoint", folder_ / "c", "--data-dir", *data_ / "digits", "--batch-size", "64", "--json"});
  ASSERT_EQ(evaluated.exit_code, 0) << evaluated.err;
  const json accuracy = json::parse(evaluated.out);
  EXPECT_EQ(accuracy["samples"], 300);
  EXPECT_NEAR(accuracy["top1"].get<double>(), top1, 1e-9);
}

// Interrupted where it happens to be, gone on with, and interrupted by the end of an epoch: the same bits in the end.
TEST_F(Train, AnInterruptedRunGoesOnToTheSameWeights) {
  const Words common{"--epochs", "4", "--optimizer", "adam", "--average", "0.99", "--eval", "first"};
  const auto with = [&](const std::string& folder, bool resume) {
    Words words = common;
    words.insert(words.end(), {"--checkpoint-dir", folder, "--record", folder + ".json"});
    if (resume) words.push_back("--resume");
    return words;
  };
  ASSERT_EQ(run(with(folder_ / "whole", false)).exit_code, 0);
  const CommandResult interrupted =
      run(with(folder_ / "parts", false), {.signal = SIGINT, .signal_after_output = "epoch   1", .environment = {}});
  EXPECT_EQ(interrupted.exit_code, 130) << interrupted.out << interrupted.err;
  const CommandResult resumed = run(with(folder_ / "parts", true));
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_NE(resumed.out.find("resumed at step "), std::string::npos) << resumed.out;
  EXPECT_NE(resumed.out.find(" of training in this run, "), std::string::npos) << resumed.out;
  const json whole = read(folder_ / "whole.json"), last = read(folder_ / "parts.json");
  EXPECT_EQ(last["epochs"].front()["loss"], whole["epochs"][4 - last["epochs"].size()]["loss"])
      << "of all steps of the epoch";
  EXPECT_EQ(last["train_seconds"].get<double>(),
            last["resumed"]["train_seconds"].get<double>() + last["train_seconds_here"].get<double>());
  EXPECT_FALSE(whole.contains("resumed"));
  const CommandResult report = run_trireme({"report", folder_ / "parts.json", "--out", folder_ / "r.html"});
  EXPECT_NE(report.out.find("of it since it was resumed at step "), std::string::npos) << report.out << report.err;
  expect_same_tensors(train::checkpoint_path(folder_ / "whole", 120), train::checkpoint_path(folder_ / "parts", 120));
}

TEST_F(Train, ARunWithNothingLeftSaysHowGoodItIs) {
  const auto last_accuracy = [](const std::string& text) { return text.substr(text.rfind("top-1 "), 14); };
  const Words common{"--epochs", "1", "--checkpoint-dir", folder_ / "c", "--record", folder_ / "r.json"};
  const CommandResult trained = run(common);
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const json epoch = read(folder_ / "r.json")["epochs"].back();
  Words again = common;
  again.push_back("--resume");
  const CommandResult resumed = run(again);
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_NE(resumed.out.find("nothing left to do: 1 epoch was complete after step 30  top-1"), std::string::npos)
      << resumed.out;
  EXPECT_EQ(last_accuracy(resumed.out), last_accuracy(trained.out));
  const json record = read(folder_ / "r.json");
  EXPECT_TRUE(record["epochs"].empty());
  for (const char* key : {"step", "top1", "top5", "validation_loss"}) {
    EXPECT_EQ(record["nothing_left"][key], epoch[key]) << key;
  }
}

TEST_F(Train, KernelsAreTimedOnceForTrainingAndForEvaluation) {
  CommandOptions own_cache;
  own_cache.environment = {"XDG_CACHE_HOME=" + (folder_ / "cache")};
  const std::string notice = "timing the kernels of this network";
  const auto train = [&](const std::string& checkpoints) {
    // One thread: no choice of groups of cores, which is by measuring. Of mnist's kernels there is no choice forward.
    return run_trireme(
        {"train", "--model", "resnet20", "--data-dir", *data_ / "digits", "--batch-size", "20", "--epochs", "0.02",
         "--eval-batch-size", "30", "--checkpoint-dir", folder_ / checkpoints, "--num-intra-threads", "1"},
        own_cache);
  };
  const CommandResult first = train("first");
  // Timings of a busy machine are taken again when it is idle, and other tests run on this one.
  for (const auto& file : std::filesystem::recursive_directory_iterator(folder_ / "cache")) {
    if (file.path().extension() != ".json") continue;  // a lock
    json timings = read(file.path());
    for (json& problem : timings.at("entries")) problem.at("load") = 0;
    std::ofstream(file.path()) << timings;
  }
  const CommandResult second = train("second");
  ASSERT_EQ(second.exit_code, 0) << second.err;
  EXPECT_NE(first.err.find(notice), std::string::npos) << first.err;
  EXPECT_EQ(second.err.find(notice), std::string::npos) << second.err;

  std::filesystem::remove_all(folder_ / "cache");
  const Words eval{"eval", "--checkpoint", folder_ / "first", "--data-dir", *data_ / "digits"};
  ASSERT_EQ(run_trireme(eval, own_cache).exit_code, 0);
  EXPECT_TRUE(std::filesystem::exists(folder_ / "cache"));
}

TEST_F(Train, SmallBatchesAddedUpTrainLikeALargeOne) {
  // Neither groups of cores, which timing chooses, nor Winograd, which rounds more.
  const auto words_of = [&](const std::string& checkpoints, const std::string& accumulate) {
    return train({"--epochs", "1", "--checkpoint-dir", folder_ / checkpoints, "--accumulate", accumulate,
                  "--no-dropout", "--batch-split", "1", "--exact"});
  };
  Words words = words_of("a", "5");
  *std::find(words.begin(), words.end(), "50") = "10";
  ASSERT_EQ(run_trireme(words).exit_code, 0);
  ASSERT_EQ(run_trireme(words_of("b", "1")).exit_code, 0);
  const train::SafetensorsFile a(train::checkpoint_path(folder_ / "a", 30)),
      b(train::checkpoint_path(folder_ / "b", 30));
  for (const std::string& name : a.names()) {
    if (name.find("/optimizer/") != std::string::npos) continue;  // of gradients, which differ more than their sum
    const HostTensor x = a.read(name), y = b.read(name);
    // Thirty steps at this rate let roundings grow to some 5e-4; without one of five batches it would be some 6e-3.
    for (std::size_t i = 0; i < x.f32().size(); ++i) ASSERT_NEAR(x.f32()[i], y.f32()[i], 1e-3) << name;
  }
}

TEST_F(Train, HalfTheBitsTrainAsWell) {
  const auto top1_with = [&](const std::string& precision) -> std::optional<double> {
    const std::string record = folder_ / (precision + ".json");
    const CommandResult trained = run({"--epochs", "3", "--precision", precision, "--record", record});
    if (trained.err.find("has no fast bf16 here") != std::string::npos) return std::nullopt;
    EXPECT_EQ(trained.exit_code, 0) << trained.err;
    return read(record)["epochs"].back()["top1"].get<double>();
  };
  const std::optional<double> bf16 = top1_with("bf16");
  if (!bf16) GTEST_SKIP() << "this machine has no bf16";
  EXPECT_GT(*bf16, 0.9);
  EXPECT_NEAR(*bf16, *top1_with("fp32"), 0.02);  // six of 300 images
}

TEST_F(Train, ALossThatIsNotANumberIsCalledSo) {
  const CommandResult result = run({"--weight-decay", "1e30"});
  EXPECT_EQ(result.exit_code, 1) << result.out;
  EXPECT_TRUE(result.err.find("the loss is not a number (NaN) in step ") != std::string::npos ||
              result.err.find("the loss is infinite in step ") != std::string::npos)
      << result.err;
  EXPECT_EQ(result.err.find("nan"), std::string::npos) << result.err;
}

TEST_F(Train, ItEndsWhenItIsGoodEnough) {
  const CommandResult trained =
      run({"--epochs", "50", "--target-accuracy", "0.5", "--record", folder_ / "r.json", "--eval", "all"});
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_LT(read(folder_ / "r.json")["epochs"].size(), 10u);
  EXPECT_NE(trained.out.find("reached the accuracy asked for"), std::string::npos) << trained.out;
}

// Before kernels are timed, with nothing left behind.
TEST_F(Train, WhatCannotBeWrittenIsRefusedAtOnce) {
  std::ofstream(folder_ / "file") << "x";
  for (const auto& [option, path, text] :
       std::vector<std::array<std::string, 3>>{{"--csv", folder_ / "none/log.csv", "No such file or directory"},
                                               {"--csv", folder_.path(), "is a folder"},
                                               {"--tensorboard", folder_ / "file/tb", "Not a directory"},
                                               {"--record", folder_ / "none/r.json", "No such file or directory"},
                                               {"--trace", folder_ / "none/t.json", "No such file or directory"},
                                               {"--checkpoint-dir", folder_ / "file/c", "Not a directory"}}) {
    if (option == "--tensorboard" && !has_library("protobuf")) continue;
    CommandOptions own_cache;
    own_cache.environment = {"XDG_CACHE_HOME=" + (folder_ / "cache")};
    const CommandResult result = run_trireme({"train", "--model", "resnet20", "--data-dir", *data_ / "digits",
                                              "--epochs", "0.01", "--batch-size", "4", option, path},
                                             own_cache);
    EXPECT_EQ(result.exit_code, 2) << option << result.err;
    EXPECT_NE(result.err.find(path), std::string::npos) << result.err;
    EXPECT_NE(result.err.find(text), std::string::npos) << result.err;
    EXPECT_EQ(result.err.find("timing the kernels"), std::string::npos) << result.err;
    EXPECT_EQ(result.out, "") << option;
  }
  std::filesystem::remove_all(folder_ / "cache");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_.path()), {}), 1) << "the file of this test";
}

TEST_F(Train, WhatCannotBeIsRefused) {
  const auto expect_refused = [&](const Words& options, const std::string& text) {
    const CommandResult result = run(options);
    EXPECT_EQ(result.exit_code, 2) << result.err;
    EXPECT_NE(result.err.find(text), std::string::npos) << result.err;
  };
  expect_refused({"--epochs", "0"}, "--epochs 0: must be a number, above 0");
  expect_refused({"--resume"}, "--resume needs --checkpoint-dir");
  expect_refused({"--target-accuracy", "99"}, "--target-accuracy 99: must be a number from 0 to 1");
  expect_refused({"--average", "1"}, "--average 1: must be a number, 0 or more and below 1");
  EXPECT_EQ(run({"--epochs", "0.1", "--checkpoint-dir", folder_ / "c"}).exit_code, 0);
  expect_refused({"--checkpoint-dir", folder_ / "c"}, "continue from the last one with --resume");
  expect_refused({"--checkpoint-dir", folder_ / "c", "--resume", "--seed", "5"}, "this training used --seed 1");
  const CommandResult none = run_trireme({"train", "--model", "mnist"});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_NE(none.err.find("give --data-dir"), std::string::npos) << none.err;
  std::ofstream(folder_ / "c/checkpoint-99.safetensors") << "half";
  expect_refused({"--checkpoint-dir", folder_ / "c", "--resume"}, "is not a safetensors file");
}

}  // namespace
}  // namespace trireme::testkit
