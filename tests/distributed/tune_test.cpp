// A tune as a user runs it, with real trials of a small network: interrupted, gone on with, and its file used.
#include <gtest/gtest.h>
#include <signal.h>

#include <map>
#include <nlohmann/json.hpp>

#include "tests/distributed/running_command.hpp"

namespace trireme {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using json = nlohmann::json;
using testkit::has;
using testkit::RunningCommand;
using testkit::Words;

class Tune : public testing::Test {
 protected:
  Words arguments() const {
    return {"tune",
            "--model",
            "lenet",
            "--workers-up-to",
            "2",
            "--batches",
            "2,4",
            "--trials",
            "12",
            "--trial-time",
            "0.02s",
            "--out",
            out().string(),
            "--config-out",
            tuned().string(),
            "--set",
            "autotune=off",
            "--set",
            "bucket-mb=auto",
            "--set",
            "all-reduce=auto",
            "--set",
            "num-intra-threads=1"};
  }
  fs::path out() const { return folder_.path() / "out"; }
  fs::path tuned() const { return folder_.path() / "tuned.json"; }
  std::map<std::string, std::string> records() const {
    std::map<std::string, std::string> found;
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(out() / "runs", ignored)) {
      if (entry.path().extension() == ".json") found[entry.path().filename()] = testkit::read_file(entry.path());
    }
    return found;
  }

  testkit::TemporaryFolder folder_;
};

TEST_F(Tune, InterruptedItGoesOnAndItsFileIsOneForConfig) {
  RunningCommand first(arguments());
  ASSERT_TRUE(testkit::wait_until([&] { return records().size() >= 2; }, 60s)) << first.out() << first.err();
  kill(first.pid(), SIGINT);
  EXPECT_EQ(first.exit_code(), 130);
  EXPECT_TRUE(has(first.out(), "to go on: trireme tune --model lenet")) << first.out();
  EXPECT_FALSE(fs::exists(tuned()));
  const auto kept = records();

  RunningCommand second(arguments());
  ASSERT_EQ(second.exit_code(100s), 0) << second.out() << second.err();
  const auto found = records();
  for (const auto& [name, text] : kept) EXPECT_EQ(found.at(name), text) << name << " was run again";
  EXPECT_LE(found.size(), 12u);
  for (const auto& [name, text] : found) {
    const json record = json::parse(text);
    EXPECT_EQ(record["schema"], "trireme.run/1");
    EXPECT_EQ(record["study"]["name"], "tune-lenet");
    EXPECT_TRUE(record["study"]["cell"].contains("workers"));
    EXPECT_FALSE(record.contains("error")) << record["error"];
  }
  for (const char* part : {"thinks best", "kept ", "dropped ", "(default)", "best: ", "gain: ", "taken from the folder",
                           "interleaved repeats", "configuration: "}) {
    EXPECT_TRUE(has(second.out(), part)) << part << " in " << second.out();
  }

  const json config = json::parse(testkit::read_file(tuned()));
  EXPECT_EQ(config["model"], "lenet");
  EXPECT_TRUE(config.contains("workers") && config.contains("batch-size") && config.contains("ps"));
  RunningCommand use({"launch", "--config", tuned(), "--", "bench", "--num-batches", "1", "--num-warmup-batches", "0"});
  EXPECT_EQ(use.exit_code(60s), 0) << use.err();
  EXPECT_TRUE(has(use.out(), "total images/sec")) << use.out();
}

TEST_F(Tune, WrongInputEndsWithCode2AndRunsNothing) {
  const auto error = [](const Words& words) {
    RunningCommand command(words);
    EXPECT_EQ(command.exit_code(), 2);
    return command.err();
  };
  EXPECT_TRUE(has(error({"tune", "--objective", "fame"}), "--objective fame: must be images-per-second, "));
  EXPECT_TRUE(has(error({"tune", "--objective", "epoch-time"}), "Give --samples N"));
  EXPECT_TRUE(has(error({"tune", "--trials", "3"}), "--trials 3: must be at least 12"));
  EXPECT_TRUE(has(error({"tune", "--set", "batch-sise=4"}), "did you mean 'batch-size'"));
  EXPECT_TRUE(has(error({"tune", "--model", "resnet51"}), "resnet51"));
  RunningCommand dry({"tune", "--model", "lenet", "--dry-run", "--out", out().string()});
  EXPECT_EQ(dry.exit_code(), 0);
  EXPECT_TRUE(has(dry.out(), "configurations make sense on ")) << dry.out();
  EXPECT_FALSE(fs::exists(out()));
}

}  // namespace
}  // namespace trireme
