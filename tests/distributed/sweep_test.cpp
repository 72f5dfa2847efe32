// Sweeps as users run them, with real benchmarks of the smallest network: killed, interrupted, with cells that fail.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <sstream>
#include <thread>

#include "tests/distributed/running_command.hpp"

namespace trireme {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using json = nlohmann::ordered_json;  // options stay in their order
using testkit::has;
using testkit::leaves_nothing;
using testkit::RunningCommand;
using testkit::Words;

json tiny_plan(const json& vary) {
  return {{"schema", "trireme.plan/1"},
          {"name", "tiny"},
          {"fixed",
           {{"model", "alexnet_cifar"},
            {"forward-only", true},
            {"autotune", "off"},
            {"num-intra-threads", 1},
            {"num-batches", 1},
            {"num-warmup-batches", 0}}},
          {"vary", vary},
          {"repeats", 1}};
}

class Sweep : public testing::Test {
 protected:
  // The plan is written to a file, and the results go to a folder beside it.
  Words arguments(const json& plan, const Words& further = {}) const {
    std::ofstream(folder_ / "plan.json") << plan;
    Words words{"sweep", folder_ / "plan.json", "--out", out().string()};
    words.insert(words.end(), further.begin(), further.end());
    return words;
  }
  fs::path out() const { return folder_.path() / "out"; }
  std::map<std::string, std::string> records() const {
    std::map<std::string, std::string> found;
    if (!fs::exists(out() / "runs")) return found;
    for (const auto& entry : fs::directory_iterator(out() / "runs")) {
      if (entry.path().extension() == ".json") found[entry.path().filename()] = testkit::read_file(entry.path());
    }
    return found;
  }
  // Of each run, by the journal.
  std::map<std::string, int> starts() const {
    std::map<std::string, int> count;
    std::ifstream journal(out() / "journal.log");
    for (std::string time, what, run; journal >> time >> what >> run;) {
      if (what == "start") ++count[run];
    }
    return count;
  }

  testkit::TemporaryFolder folder_;
};

TEST_F(Sweep, KilledFiveTimesItStillEndsWithExactlyThePlannedRecords) {
  std::vector<int> seeds(20);
  std::iota(seeds.begin(), seeds.end(), 1);
  const Words words = arguments(tiny_plan({{"batch-size", {1, 2}}, {"seed", seeds}}));
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  std::map<std::string, std::string> kept;
  for (int kill_number = 0; kill_number < 5; ++kill_number) {
    RunningCommand sweep(words);
    const std::size_t wanted = kept.size() + random() % 4;  // so that the kills are spread over the sweep
    ASSERT_TRUE(
        testkit::wait_until([&] { return fs::exists(out() / "journal.log") && records().size() >= wanted; }, 60s));
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 700));
    kill(sweep.pid(), SIGKILL);
    EXPECT_EQ(sweep.exit_code(), 128 + SIGKILL);
    EXPECT_TRUE(leaves_nothing(sweep));
    for (const auto& [name, text] : kept) EXPECT_EQ(records()[name], text) << name << " was run again";
    kept = records();
    for (const auto& [name, text] : kept) EXPECT_NO_THROW(json::parse(text)) << name;
  }
  EXPECT_LT(kept.size(), 40u) << "all was done before the last kill";
  RunningCommand last(words);
  EXPECT_EQ(last.exit_code(100s), 0) << last.out() << last.err();
  EXPECT_TRUE(leaves_nothing(last));
  EXPECT_TRUE(has(last.out(), "has the highest median of 40 configurations")) << last.out();
  EXPECT_TRUE(has(last.out(), "not enough runs to tell (1 and 1; 4 each would be enough)"))
      << "of one run each: " << last.out();

  const auto found = records();
  EXPECT_EQ(found.size(), 40u);
  for (const auto& [name, text] : kept) EXPECT_EQ(found.at(name), text) << name << " was run again";
  int all_starts = 0;
  for (const auto& [run, count] : starts()) all_starts += count;
  EXPECT_EQ(starts().size(), 40u);
  EXPECT_LE(all_starts, 40 + 5) << "only what was killed is started twice";
  for (int batch_size = 1; batch_size <= 2; ++batch_size) {
    for (const int value : seeds) {
      const json record = json::parse(
          found.at("batch-size-" + std::to_string(batch_size) + "_seed-" + std::to_string(value) + ".r1.json"));
      EXPECT_EQ(record["schema"], "trireme.run/1");
      EXPECT_EQ(record["config"]["batch_size"], batch_size);
      EXPECT_EQ(record["study"]["cell"], json({{"batch-size", batch_size}, {"seed", value}}));
      EXPECT_EQ(record["study"]["name"], "tiny");
      EXPECT_EQ(record["study"]["repeat"], 1);
      EXPECT_EQ(record["study"]["framework"], "trireme");
      EXPECT_TRUE(has(record["study"]["command"], "trireme bench --model alexnet_cifar"));
    }
  }
  for (const auto& entry : fs::directory_iterator(out() / "runs")) EXPECT_EQ(entry.path().extension(), ".json");
  EXPECT_FALSE(fs::exists(out() / ".running"));

  RunningCommand again(words);
  EXPECT_EQ(again.exit_code(), 0);
  EXPECT_EQ(records(), found) << "nothing is run again";
}

TEST_F(Sweep, CtrlCEndsTheRunAndSaysHowToGoOn) {
  json plan = tiny_plan({{"workers", {2}}});
  plan["fixed"]["num-batches"] = 1'000'000;
  const Words words = arguments(plan);
  RunningCommand sweep(words);
  ASSERT_TRUE(
      testkit::wait_until([&] { return has(testkit::read_file(out() / "logs/workers-2.r1.log"), "images/sec"); }, 60s));
  RunningCommand second(words);
  EXPECT_EQ(second.exit_code(), 2);
  EXPECT_TRUE(has(second.err(), "another study (process " + std::to_string(sweep.pid()) + ") is using the folder"));
  kill(sweep.pid(), SIGINT);
  EXPECT_EQ(sweep.exit_code(), 130);
  EXPECT_TRUE(leaves_nothing(sweep));
  EXPECT_TRUE(has(sweep.out(), "to continue: trireme sweep ")) << sweep.out();
  EXPECT_TRUE(records().empty());
}

TEST_F(Sweep, EndsWithItsTerminal) {
  json plan = tiny_plan({{"batch-size", {1}}});
  plan["fixed"]["num-batches"] = 1'000'000;
  const auto previous = signal(SIGHUP, SIG_DFL);  // which the sweep inherits; tests may run under nohup
  RunningCommand sweep(arguments(plan));
  signal(SIGHUP, previous);
  ASSERT_TRUE(testkit::wait_until([&] { return fs::exists(out() / "logs/batch-size-1.r1.log"); }, 60s));
  kill(sweep.pid(), SIGHUP);
  EXPECT_EQ(sweep.exit_code(), 130);
  EXPECT_TRUE(leaves_nothing(sweep));
  EXPECT_TRUE(records().empty());
}

TEST_F(Sweep, KilledDuringALaunchItLeavesNothing) {
  json plan = tiny_plan({{"workers", {2}}});
  plan["fixed"]["num-batches"] = 1'000'000;
  RunningCommand sweep(arguments(plan));
  ASSERT_TRUE(
      testkit::wait_until([&] { return has(testkit::read_file(out() / "logs/workers-2.r1.log"), "images/sec"); }, 60s));
  kill(sweep.pid(), SIGKILL);
  EXPECT_TRUE(leaves_nothing(sweep));
}

TEST_F(Sweep, AFailedCellIsRecordedAndTheOthersGoOn) {
  json plan = tiny_plan({{"bucket-mb", {"auto", "sideways"}}, {"workers", {1, 2}}});
  plan["constraints"] = {"bucket-mb == 'auto' or workers == 1"};
  plan["repeats"] = 2;
  RunningCommand sweep(arguments(plan));
  EXPECT_EQ(sweep.exit_code(60s), 1);
  EXPECT_TRUE(has(sweep.out(), "failed: bucket-mb=sideways workers=1: --bucket-mb sideways")) << sweep.out();
  const auto found = records();
  EXPECT_EQ(found.size(), 5u) << "the second round leaves out what has failed";
  const json failed = json::parse(found.at("bucket-mb-sideways_workers-1.r1.json"));
  EXPECT_TRUE(has(failed["error"], "--bucket-mb sideways"));
  EXPECT_TRUE(failed["results"].is_null());
  EXPECT_TRUE(failed.contains("command") && failed.contains("started"));
  EXPECT_EQ(failed["study"]["cell"]["bucket-mb"], "sideways");
  const json pair = json::parse(found.at("bucket-mb-auto_workers-2.r2.json"));
  EXPECT_EQ(pair["config"]["workers"], 2);
  EXPECT_TRUE(has(pair["study"]["command"], "trireme launch --workers 2 -- bench "));

  RunningCommand again(arguments(plan));
  EXPECT_EQ(again.exit_code(), 1);
  EXPECT_EQ(starts()["bucket-mb-sideways_workers-1.r1"], 1);
  RunningCommand retried(arguments(plan, {"--retry-failed"}));
  EXPECT_EQ(retried.exit_code(), 1);
  EXPECT_EQ(starts()["bucket-mb-sideways_workers-1.r1"], 2);
  EXPECT_EQ(starts()["bucket-mb-auto_workers-1.r1"], 1);

  plan["vary"]["bucket-mb"] = {"auto", "8"};
  RunningCommand changed(arguments(plan));
  EXPECT_EQ(changed.exit_code(), 2);
  EXPECT_TRUE(has(changed.err(), "vary.bucket-mb is [\"auto\",\"8\"] and was [\"auto\",\"sideways\"]"))
      << changed.err();
}

TEST_F(Sweep, ComparesWaysToDivideANetwork) {
  json plan = tiny_plan({{"parallel", {"data", "pipeline:2"}}});
  plan["fixed"].erase("forward-only");
  plan["fixed"].update({{"model", "mnist"}, {"workers", 2}});
  RunningCommand sweep(arguments(plan));
  EXPECT_EQ(sweep.exit_code(60s), 0) << sweep.err();
  EXPECT_TRUE(has(sweep.out(), "parallel=pipeline:2")) << sweep.out();
  EXPECT_EQ(records().size(), 2u);
  for (const auto& [name, text] : records()) {
    EXPECT_EQ(json::parse(text).contains("pipeline"), has(name, "pipeline")) << name;
  }
}

TEST_F(Sweep, StopsWithinItsBudgetAndGoesOnLater) {
  json plan = tiny_plan({{"batch-size", {1, 2}}});
  plan["repeats"] = 20;
  RunningCommand sweep(arguments(plan, {"--budget", "2s"}));
  EXPECT_EQ(sweep.exit_code(60s), 0);
  const std::size_t done = records().size();
  EXPECT_GE(done, 1u);
  EXPECT_LT(done, 40u);
  EXPECT_TRUE(has(sweep.out(), "left out for lack of time (--budget): " + std::to_string(40 - done) + " run"))
      << sweep.out();
  EXPECT_TRUE(has(sweep.out(), "to continue: "));
}

TEST_F(Sweep, ADryRunShowsTheCommandsAndMakesNothing) {
  const json plan = tiny_plan({{"workers", {1, 2}}});
  RunningCommand sweep(arguments(plan, {"--dry-run", "--set", "workers=2"}));
  EXPECT_EQ(sweep.exit_code(), 0);
  EXPECT_TRUE(has(sweep.out(), "trireme launch --workers 2 -- bench --model alexnet_cifar")) << sweep.out();
  EXPECT_FALSE(has(sweep.out(), "workers=1"));
  EXPECT_TRUE(has(sweep.out(), "1 run left to do"));
  EXPECT_FALSE(fs::exists(out()));
}

TEST_F(Sweep, EveryReadyMadePlanGivesCellsHere) {
  RunningCommand list({"sweep", "--list"});
  ASSERT_EQ(list.exit_code(), 0);
  std::istringstream lines(list.out());
  std::string line;
  std::getline(lines, line);
  std::getline(lines, line);  // titles and a rule
  int plans = 0;
  while (std::getline(lines, line) && !line.empty()) {
    const std::string name = line.substr(0, line.find(' '));
    RunningCommand dry({"sweep", name, "--dry-run", "--set", "hosts=a,b", "--set", "data-dir=/data"});
    EXPECT_EQ(dry.exit_code(), 0) << name << dry.err();
    EXPECT_TRUE(has(dry.out(), "left to do")) << name;
    ++plans;
  }
  EXPECT_EQ(plans, 19);
}

TEST_F(Sweep, WrongInputEndsWithCode2) {
  const auto error = [](const Words& words) {
    RunningCommand command(words);
    EXPECT_EQ(command.exit_code(), 2);
    return command.err();
  };
  EXPECT_TRUE(has(error({"sweep"}), "missing plan; give a file or a ready-made plan: "));
  EXPECT_TRUE(has(error({"sweep", "no-such"}), "there is no such file or ready-made plan. The plans are "));
  std::ofstream(folder_ / "broken.json") << "{\n  \"name\": }";
  EXPECT_TRUE(has(error({"sweep", folder_ / "broken.json"}), "not valid JSON: parse error at line 2"));
  EXPECT_TRUE(has(error(arguments(tiny_plan({{"batch-size", {1}}}), {"--budget", "soon"})), "--budget: 'soon'"));
  EXPECT_TRUE(
      has(error({"sweep", "io-overhead"}), "the plan does not set data-dir; give it with --set data-dir=VALUE"));
  EXPECT_FALSE(fs::exists(out()));
}

}  // namespace
}  // namespace trireme
