// --config as a user meets it: what the file says, what wins over it, and what is wrong with it.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/cli/run_command.hpp"
#include "tests/support/libraries.hpp"
#include "tests/support/temporary_folder.hpp"

namespace trireme::testkit {
namespace {

using Words = std::vector<std::string>;

class ConfigFile : public testing::Test {
 protected:
  std::string config(const std::string& text) const {
    std::ofstream(folder_ / "c.json") << text;
    return folder_ / "c.json";
  }
  static bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }
  void expect_refused(const Words& words, const std::string& part) const {
    const CommandResult result = run_trireme(words);
    EXPECT_EQ(result.exit_code, 2) << result.out << result.err;
    EXPECT_TRUE(has(result.err, part)) << "expected '" << part << "' in: " << result.err;
  }

  TemporaryFolder folder_;
};

TEST_F(ConfigFile, SetsOptionsAndTheCommandLineWins) {
  const std::string file = config(R"({"about": "a note", "model": "alexnet_cifar", "batch-size": 3, "bind": false,
      "num_batches": 1, "num-warmup-batches": 0, "forward-only": true, "autotune": "off", "momentum": 0.5,
      "workers": 1, "ps": 0})");
  const CommandResult result = run_trireme({"bench", "--config", file, "--batch_size=2", "--record", "-"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto config = nlohmann::json::parse(result.out)["config"];
  EXPECT_EQ(config["model"], "alexnet_cifar");
  EXPECT_EQ(config["batch_size"], 2);
  EXPECT_EQ(config["num_batches"], 1);
  EXPECT_EQ(config["forward_only"], true);
}

TEST_F(ConfigFile, ALaunchTakesWhatIsItsOwnAndHandsTheRestOn) {
  if (!has_library("MPI")) GTEST_SKIP() << "this build has no MPI";
  const std::string file = config(R"({"workers": 2, "batch-size": 3, "model": "lenet", "no-dropout": true})");
  const Words launch{"launch", "--config", file, "--dry-run", "--oversubscribe"};
  Words words = launch;
  words.insert(words.end(), {"--", "bench", "--model", "mnist"});
  const CommandResult result = run_trireme(words);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(has(result.out, "bench --batch-size 3 --no-dropout --model mnist")) << result.out;
  EXPECT_TRUE(has(result.out, "[1] ")) << "two workers";

  words.insert(words.begin() + 1, {"--workers", "1"});
  const CommandResult alone = run_trireme(words);
  ASSERT_EQ(alone.exit_code, 0) << alone.err;
  EXPECT_FALSE(has(alone.out, "[1] "));

  const CommandResult inner =
      run_trireme({"launch", "--workers", "2", "--oversubscribe", "--dry-run", "--", "bench", "--config", file});
  EXPECT_EQ(inner.exit_code, 0) << "the launch says how many: " << inner.err;
}

TEST_F(ConfigFile, AnOptionThatMayBeRepeatedIsAList) {
  const std::string file =
      config(R"({"slurm": true, "submit": true, "nodes": 2, "sbatch": ["--gres=gpu:1", "--wait"]})");
  const CommandResult result = run_trireme({"launch", "--config", file, "--dry-run", "--", "bench"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(has(result.out, "#SBATCH --gres=gpu:1\n#SBATCH --wait\n")) << result.out;
  expect_refused({"launch", "--config", config(R"({"sbatch": "--wait"})"), "--", "bench"},
                 "sbatch is a list of texts; it cannot be \"--wait\"");
}

TEST_F(ConfigFile, WhatIsWrongIsNamedWithFileAndKey) {
  const std::string unknown = config(R"({"batch-sise": 3})");
  expect_refused(
      {"bench", "--config", unknown},
      unknown + ": there is no option 'batch-sise'; did you mean 'batch-size'? Allowed are model, batch-size,");
  expect_refused({"launch", "--config", unknown, "--workers", "1", "--", "bench"}, "Allowed are workers, ps,");
  const std::string kind = config(R"({"batch-size": "many"})");
  expect_refused({"bench", "--config", kind}, kind + ": batch-size is a whole number; it cannot be \"many\"");
  expect_refused({"train", "--config=" + config(R"({"forward-only": true})")}, "there is no option 'forward-only'");
  expect_refused({"bench", "--config", config(R"({"epochs": 3})")}, "there is no option 'epochs'. Allowed are model,");
  expect_refused({"launch", "--config", config(R"({"model": "lenet"})"), "--workers", "1"}, "nothing to launch");
  expect_refused({"models", "--config", kind}, "unknown option '--config'");
  expect_refused({"bench", "--config", config(R"({"bind": 1})")}, "bind is true or false; it cannot be 1");
  expect_refused({"bench", "--config", config(R"({"batch-size": [1]})")}, "it cannot be [1]");
  expect_refused({"bench", "--config", config(R"({"config": "x"})")}, "there is no option 'config'");
  expect_refused({"bench", "--config", config("[1]")}, "must be an object of options");
  expect_refused({"bench", "--config", config("{\n \"model\" }")}, "not valid JSON: parse error at line 2");
  expect_refused({"bench", "--config", folder_ / "none.json"}, "none.json: cannot be read");
  expect_refused({"bench", "--config", kind, "--config", kind}, "--config was given twice");
  expect_refused({"bench", "--config"}, "--config");
  expect_refused({"bench", "--config", config(R"({"batch-size": -1})")}, "batch-size -1");
  expect_refused({"launch", "--config", config(R"({"starter": "magic"})"), "--", "bench"},
                 "starter magic: must be one of auto, mpi, process");
  expect_refused({"bench", "--config", config(R"({"record": true})")}, "record is text; it cannot be true");
  const std::string two = config(R"({"workers": 2})");
  expect_refused({"bench", "--config", two},
                 two + ": workers is 2, which `bench` alone cannot do: trireme launch --config " + two + " -- bench");
}

}  // namespace
}  // namespace trireme::testkit
