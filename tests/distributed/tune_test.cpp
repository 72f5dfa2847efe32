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
  Words arguments(const Words& further = {}) const {
    Words words{"tune", "--model", "lenet", "--workers-up-to", "2", "--batches", "2,4"};
    words.insert(words.end(), {"--out", out().string(), "--config-out", tuned().string()});
    for (const char* setting : {"autotune=off", "bucket-mb=auto", "all-reduce=auto", "num-intra-threads=1"}) {
      words.insert(words.end(), {"--set", setting});
    }
    words.insert(words.end(), further.begin(), further.end());
    return words;
  }
  static Words short_trials() { return {"--trials", "12", "--trial-time", "0.02s"}; }
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
  RunningCommand first(arguments(short_trials()));
  ASSERT_TRUE(testkit::wait_until([&] { return records().size() >= 2; }, 60s)) << first.out() << first.err();
  kill(first.pid(), SIGINT);
  EXPECT_EQ(first.exit_code(), 130);
  EXPECT_TRUE(has(first.out(), "to continue: trireme tune --model lenet")) << first.out();
  EXPECT_FALSE(fs::exists(tuned()));
  const auto kept = records();

  RunningCommand second(arguments(short_trials()));
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
  for (const char* part : {"thinks best", "kept ", "dropped ", "(default)", "gain: ", "taken from the folder",
                           "interleaved repeats", "configuration: "}) {
    EXPECT_TRUE(has(second.out(), part)) << part << " in " << second.out();
  }

  const json config = json::parse(testkit::read_file(tuned()));
  EXPECT_EQ(config["model"], "lenet");
  EXPECT_TRUE(config.contains("workers") && config.contains("batch-size") && config.contains("ps"));
  RunningCommand use({"launch", "--config", tuned(), "--", "bench", "--num-batches", "1", "--num-warmup-batches", "0"});
  EXPECT_EQ(use.exit_code(60s), 0) << use.err();
  EXPECT_TRUE(has(use.out(), "total images/sec")) << use.out();
  RunningCommand train(
      {"launch", "--config", tuned(), "--", "train", "--data-dir", (folder_.path() / "none").string()});
  EXPECT_EQ(train.exit_code(60s), 2);
  EXPECT_TRUE(has(train.err(), "there is no folder or file '")) << "all options are taken: " << train.err();

  RunningCommand report({"report", out().string(), "--format", "markdown"});
  EXPECT_EQ(report.exit_code(), 0);
  EXPECT_TRUE(has(report.out(), "# The fastest configuration of lenet")) << report.out();
  EXPECT_FALSE(has(report.out() + report.err(), "skipped")) << report.err();
}

TEST_F(Tune, CtrlCDuringALaunchLeavesNothing) {
  const Words words = arguments({"--set", "workers=2", "--trial-time", "10m"});
  RunningCommand tune(words);
  const auto says_speed = [&] {
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(out() / "logs", ignored)) {
      if (has(testkit::read_file(entry.path()), "images/sec")) return true;
    }
    return false;
  };
  ASSERT_TRUE(testkit::wait_until(says_speed, 60s)) << tune.out() << tune.err();
  RunningCommand second(words);
  EXPECT_EQ(second.exit_code(), 2);
  EXPECT_TRUE(has(second.err(), "another study (process " + std::to_string(tune.pid()) + ") is using the folder"));
  kill(tune.pid(), SIGINT);
  EXPECT_EQ(tune.exit_code(), 130);
  EXPECT_TRUE(testkit::leaves_nothing(tune));
  EXPECT_TRUE(records().empty());
  for (const auto& entry : fs::directory_iterator(folder_.path())) EXPECT_EQ(entry.path(), out()) << "half a file";
  EXPECT_FALSE(fs::exists(out() / ".running"));
  EXPECT_FALSE(has(tune.out(), "best so far")) << "of no trial: " << tune.out();
}

TEST_F(Tune, ADefaultThatIsRefusedIsWrongInputAndIsTriedAgain) {
  for (int time = 1; time <= 2; ++time) {
    RunningCommand tune(arguments({"--set", "backend=sideways"}));
    EXPECT_EQ(tune.exit_code(), 2);
    EXPECT_TRUE(has(tune.err(), "the default configuration cannot run: --backend sideways")) << tune.err();
  }
  EXPECT_FALSE(fs::exists(tuned()));
  const std::string journal = testkit::read_file(out() / "journal.log");
  EXPECT_NE(journal.find(" start "), journal.rfind(" start ")) << journal;
}

TEST_F(Tune, WrongInputEndsWithCode2AndRunsNothing) {
  const auto error = [](const Words& words) {
    RunningCommand command(words);
    EXPECT_EQ(command.exit_code(), 2);
    return command.err();
  };
  EXPECT_TRUE(has(error({"tune", "--objective", "fame"}), "--objective fame: must be images-per-second, "));
  EXPECT_TRUE(has(error({"tune", "--objective", "epoch-time"}), "needs --samples N"));
  EXPECT_TRUE(has(error({"tune", "--trials", "3"}), "--trials 3: must be at least 12"));
  EXPECT_TRUE(has(error({"tune", "--trials", "-3"}), "--trials -3: must be at least 12"));
  EXPECT_TRUE(has(error(arguments({"--trial-time", "3"})), "--trial-time: '3': must be a duration"));
  EXPECT_TRUE(has(error({"tune", "--set", "max-seconds=3"}), "--trial-time"));
  EXPECT_TRUE(has(error({"tune", "--config-out", out() / "tuned.json"}), "cannot write the configuration"));
  EXPECT_TRUE(has(error({"tune", "--set", "batch-sise=4"}), "did you mean 'batch-size'"));
  EXPECT_TRUE(has(error({"tune", "--model", "resnet51"}), "resnet51"));
  RunningCommand dry({"tune", "--model", "lenet", "--dry-run", "--out", out().string()});
  EXPECT_EQ(dry.exit_code(), 0);
  EXPECT_TRUE(has(dry.out(), "configurations make sense on ")) << dry.out();
  EXPECT_FALSE(fs::exists(out()));
}

}  // namespace
}  // namespace trireme
