// Commands that run studies, as far as they come without running anything: what they refuse, and in which words.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/cli/run_command.hpp"
#include "tests/support/temporary_folder.hpp"

namespace trireme::testkit {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

class Study : public testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& text) const {
    fs::create_directories(fs::path(folder_ / name).parent_path());
    std::ofstream(folder_ / name) << text;
    return folder_ / name;
  }
  static void expect_refused(const Words& words, const std::string& part) {
    const CommandResult result = run_trireme(words);
    EXPECT_EQ(result.exit_code, 2) << result.err;
    EXPECT_NE(result.err.find(part), std::string::npos) << result.err;
    EXPECT_EQ(result.err.find("internal"), std::string::npos) << result.err;
  }
  Words dry_sweep(const std::string& plan) const {
    return {"sweep", file("plan.json", plan), "--out", folder_ / "out", "--dry-run"};
  }

  TemporaryFolder folder_;
};

TEST_F(Study, ADryRunLooksAtTheFolder) {
  const Words words = dry_sweep(R"({"name": "x", "vary": {"batch-size": [1]}, "repeats": 1})");
  EXPECT_EQ(run_trireme(words).exit_code, 0);
  EXPECT_FALSE(fs::exists(folder_ / "out"));
  file("out/plan.json", R"({"schema": "trireme.plan/1", "name": "y"})");
  expect_refused(words, "has the results of another plan: ");
  file("out/plan.json", R"({"schema": "trire)");
  expect_refused(words, "out/plan.json: not valid JSON");
  file("out/plan.json", "[]");
  expect_refused(words, "out/plan.json is not a plan");
  fs::remove(folder_ / "out/plan.json");
  file("out/runs/batch-size-1.r1.json", R"({"results": {"images_per_second": 5}, "study": {"name": "x"}})");
  expect_refused(words, "out/runs/batch-size-1.r1.json is the record of another run: its study.cell is null, not ");

  const Words tune{"tune", "--model", "lenet", "--out", folder_ / "out", "--dry-run"};
  EXPECT_EQ(run_trireme(tune).exit_code, 0);
  file("out/plan.json", R"({"schema": "trireme.plan/1", "name": "y"})");
  expect_refused(tune, "has the results of another plan: ");
}

// Every cell is checked as the run would, in a job of its size.
TEST_F(Study, ADryRunChecksEveryValue) {
  const CommandResult result = run_trireme(dry_sweep(
      R"({"name": "x", "fixed": {"model": "lenet"}, "repeats": 1,
          "vary": {"init-learning-rate": [0, 1], "workers": [1, 2], "batch-norm-over": ["batch", "group"]}})"));
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.out.find("6 of 8 cells cannot run here:\n"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("init-learning-rate=0 workers=2 batch-norm-over=batch: --init-learning-rate 0: "),
            std::string::npos)
      << result.out;
  EXPECT_NE(result.out.find("--batch-norm-over group needs training"), std::string::npos);
  // What the table of options does not allow is no plan.
  expect_refused(dry_sweep(R"({"name": "x", "vary": {"batch-size": [0, 8]}})"),
                 "batch-size 0: must be a whole number from 1 to 1048576");
  expect_refused(dry_sweep(R"({"name": "x", "fixed": {"batch-norm-over": "sideways"}})"),
                 "batch-norm-over sideways: must be one of batch, group");
  expect_refused(dry_sweep(R"({"name": "x", "vary": {"workers": [0, 1]}})"),
                 "workers 0: must be a whole number from 1 to 100000");
  expect_refused(dry_sweep(R"({"name": "x", "fixed": {"starter": "magic"}})"),
                 "starter magic: must be one of auto, mpi, process");
  expect_refused(dry_sweep(R"({"name": "x", "fixed": {"protocol": "http"}})"), "protocol http: must be one of auto, ");
  const CommandResult alone = run_trireme(dry_sweep(
      R"({"name": "x", "fixed": {"model": "lenet", "backup-workers": 1}, "vary": {"workers": [1]}, "repeats": 1})"));
  EXPECT_EQ(alone.exit_code, 2);
  EXPECT_NE(alone.out.find("--backup-workers has no effect without parameter servers"), std::string::npos) << alone.out;
}

TEST_F(Study, PlansThatAreNoneAreExplained) {
  const std::string deep = std::string(200'000, '[') + std::string(200'000, ']');
  expect_refused(dry_sweep(R"({"name": "x", "fixed": )" + deep + "}"), "plan.json: nested more than 100 levels deep");
  for (const char* option : {"record", "trace", "profile", "config", "worker-hosts", "program", "nodes", "submit"}) {
    expect_refused({"sweep", "threads-and-batch", "--set", std::string(option) + "=1", "--dry-run"},
                   "'" + std::string(option) + "' cannot be set in a study");
  }
  expect_refused(dry_sweep(R"({"name": "x", "fixed": {"record": "r.json"}})"), "'record' cannot be set in a study");
  expect_refused({"compare", "--study", file("study.json", R"({"name": "x", "fixed": 5})")},
                 "fixed: must be an object");
  expect_refused({"compare", "--study", file("study.json", R"({"name": "x", "vary": 5})")}, "vary: must be an object");
  expect_refused({"compare", "--study", file("study.json", R"({"name": 5})")}, "name: must be text, not 5");
  expect_refused({"compare", "--study", file("study.json", "[]")}, "a plan is a JSON object");
}

}  // namespace
}  // namespace trireme::testkit
