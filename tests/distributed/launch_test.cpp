// `trireme launch` as a user meets it: output, exit codes, refusals.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "tests/cli/run_command.hpp"
#include "tests/distributed/bench_record.hpp"
#include "tests/distributed/launched_job.hpp"
#include "trireme/cluster/channel.hpp"
#include "trireme/comm/world.hpp"

namespace trireme::testkit {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

// Each test with both ways of starting workers.
class Launch : public ::testing::TestWithParam<const char*> {
 protected:
  // Arguments that run this shell script on each of some workers.
  static std::vector<std::string> shell(const std::string& script, int workers = 3) {
    return {"--workers",
            std::to_string(workers),
            "--oversubscribe",
            "--starter",
            GetParam(),
            "--program",
            "/bin/sh",
            "--",
            "-c",
            script};
  }
};
INSTANTIATE_TEST_SUITE_P(By, Launch, ::testing::Values("mpi", "process"),
                         [](const auto& chosen) { return chosen.param; });

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST_P(Launch, ShowsWholeLinesWithTheRankInFront) {
  // Every line is written in pieces, and all ranks write at once.
  LaunchedJob job(shell(
      "i=0; while [ $i -lt 200 ]; do printf 'rank %s' $TRIREME_TASK_INDEX; printf ' line %s\\n' $i; i=$((i+1)); done; "
      "printf 'no end' >&2"));
  ASSERT_EQ(job.exit_code(), 0) << job.err();
  const std::vector<std::string> lines = lines_of(job.out());
  std::vector<int> next(3, 0);
  for (const std::string& line : lines) {
    const int rank = line.at(1) - '0';
    ASSERT_TRUE(rank >= 0 && rank < 3) << line;
    EXPECT_EQ(line, fmt::format("[{}] rank {} line {}", rank, rank, next[rank]++));
  }
  EXPECT_EQ(next, std::vector<int>(3, 200));
  for (const char* part : {"3 workers on ", "[0] no end\n", "[1] no end\n", "[2] no end\n"}) {
    EXPECT_TRUE(has(job.err(), part)) << part << " is not in " << job.err();
  }
  EXPECT_TRUE(job.is_gone_within(5s));
}

TEST_P(Launch, LosesNothingOfALargeOutput) {
  LaunchedJob job(shell("yes 'a line of text' | head -n 300000", 2));
  ASSERT_EQ(job.exit_code(), 0) << job.err();
  EXPECT_EQ(job.out().size(), 2U * 300'000U * std::string("[0] a line of text\n").size());
}

TEST_P(Launch, EndsAllWithTheCodeOfTheOneThatFails) {
  LaunchedJob job(shell("if [ $TRIREME_TASK_INDEX = 1 ]; then sleep 0.2; exit 7; fi; sleep 60"));
  EXPECT_EQ(job.exit_code(10s), 7);
  EXPECT_TRUE(has(job.err(), "trireme: error: rank 1 (")) << job.err();
  EXPECT_TRUE(has(job.err(), "ended with exit code 7")) << job.err();
  EXPECT_EQ(lines_of(job.err()).size(), 2U) << job.err();  // where the workers are, and this error
  EXPECT_TRUE(job.is_gone_within(1s));
}

TEST_P(Launch, ADeathIsReportedBeforeWhatFollowsFromIt) {
  // Rank 0 fails first in time, as a peer may that sees the connection go before the launcher hears of the death.
  LaunchedJob job(shell(
      "if [ $TRIREME_TASK_INDEX = 1 ]; then sleep 0.3; kill -9 $$; fi; sleep 0.25; echo lost rank 1 >&2; exit 4", 2));
  EXPECT_EQ(job.exit_code(10s), 128 + 9);
  const std::size_t error = job.err().find("trireme: error: rank 1 (");
  ASSERT_NE(error, std::string::npos) << job.err();
  EXPECT_TRUE(has(job.err(), "was killed by signal 9 (SIGKILL)")) << job.err();
  EXPECT_EQ(count_of(job.err(), "trireme: error"), 1U) << job.err();
  EXPECT_GT(job.err().find("trireme: after that, rank 0 ("), error);
}

TEST_P(Launch, AnErrorInTheWorkersOwnWordsIsShownOnce) {
  const fs::path folder = fs::temp_directory_path() / ("launch-output-" + std::to_string(getpid()));
  LaunchedJob job({"--workers", "2", "--oversubscribe", "--starter", GetParam(), "--output-dir", folder.string(), "--",
                   "bench", "--model", "resnet51"});
  EXPECT_EQ(job.exit_code(), 2);
  EXPECT_EQ(count_of(job.err(), "unknown model 'resnet51'"), 1U) << job.err();
  EXPECT_TRUE(has(job.err(), "trireme: error: rank ")) << job.err();
  std::string kept;
  for (const char* name : {"rank-0.err", "rank-1.err"}) {
    std::ifstream file(folder / name);
    kept += std::string(std::istreambuf_iterator<char>(file), {});
  }
  EXPECT_GE(count_of(kept, "unknown model 'resnet51'"), 1U);
  fs::remove_all(folder);
}

// Commands for a shell that write these bytes to the descriptor of that number.
std::string writing(const std::string& bytes, const std::string& descriptor) {
  std::string escaped;
  for (const char byte : bytes) escaped += fmt::format("\\{:03o}", static_cast<unsigned char>(byte));
  return fmt::format("printf '{}' >&{}; ", escaped, descriptor);
}

TEST_P(Launch, EndsWithTheCodeOfAnErrorWhoseProcessDoesNotEnd) {
  const std::string error = cluster::to_frame({{"type", "error"}, {"text", "no such model"}, {"code", 3}});
  auto arguments = shell(writing(error, "${TRIREME_TASK_LINK%%:*}") + "sleep 60", 2);
  std::replace(arguments.begin(), arguments.end(), std::string("/bin/sh"), std::string("bash"));  // has descriptors > 9
  LaunchedJob job(arguments);
  EXPECT_EQ(job.exit_code(10s), 3);
  EXPECT_TRUE(has(job.err(), "no such model")) << job.err();
}

TEST_P(Launch, RunsAsTheOnlyProcessOfAnotherJob) {
  LaunchedJob job(
      shell("echo rank $TRIREME_TASK_INDEX", 2),
      {"OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=1", "OMPI_UNIVERSE_SIZE=2", "OMPI_MCA_ess=^singleton",
       "OMPI_MCA_ess_base_jobid=2024079361", "OMPI_MCA_ess_base_vpid=0", "PMIX_NAMESPACE=2024079361", "PMIX_RANK=0"});
  EXPECT_EQ(job.exit_code(), 0) << job.err();
  EXPECT_TRUE(has(job.out(), "rank 0") && has(job.out(), "rank 1")) << job.out();
}

TEST_P(Launch, KeepsTheOutputOfEachRankInFiles) {
  const fs::path folder = fs::temp_directory_path() / ("launch-output-" + std::to_string(getpid()));
  auto arguments = shell("echo to out $TRIREME_TASK_INDEX; echo to err $TRIREME_TASK_INDEX >&2", 2);
  arguments.insert(arguments.begin(), {"--output-dir", (folder / "of" / "ranks").string()});
  LaunchedJob job(arguments);
  EXPECT_EQ(job.exit_code(), 0) << job.err();
  for (const std::string rank : {"0", "1"}) {
    for (const std::string stream : {"out", "err"}) {
      std::ifstream file(folder / "of" / "ranks" / ("rank-" + rank + "." + stream));
      EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "to " + stream + " " + rank + "\n");
    }
  }
  fs::remove_all(folder);
}

TEST_P(Launch, TheTasksKnowWhoTheyAre) {
  LaunchedJob job(
      shell("echo $TRIREME_TASK_ROLE $TRIREME_TASK_INDEX of $TRIREME_TASK_COUNT ${OMPI_COMM_WORLD_RANK-none}", 2));
  ASSERT_EQ(job.exit_code(), 0) << job.err();
  const bool mpi = GetParam() == std::string("mpi");
  for (const std::string rank : {"0", "1"}) {
    EXPECT_TRUE(has(job.out(), "worker " + rank + " of 2 " + (mpi ? rank : "none"))) << job.out();
  }
}

TEST_P(Launch, SaysWhenAWorkerIsStopped) {
  LaunchedJob job(shell("echo up; sleep 60", 2));
  const auto programs = job.programs(2);
  ASSERT_EQ(programs.size(), 2U);
  kill(programs[1].pid, SIGSTOP);
  EXPECT_TRUE(job.wait_for_output("was stopped by signal 19 (SIGSTOP)")) << job.err();
  kill(programs[0].pid, SIGKILL);  // the stopped one cannot end by itself
  EXPECT_EQ(job.exit_code(5s), 128 + 9);
  EXPECT_TRUE(has(job.err(), "; rank 1 (")) << job.err();
  EXPECT_TRUE(has(job.err(), "is stopped (signal 19 (SIGSTOP))")) << job.err();
  EXPECT_TRUE(job.is_gone_within(1s));
}

TEST_P(Launch, AReaderThatGoesAwayEndsTheJob) {
  auto arguments = shell("while :; do echo line; done", 2);
  std::string command = std::string(TRIREME_BINARY) + " launch";
  for (const std::string& argument : arguments) command += " '" + argument + "'";
  // The launcher under test is the one in the script.
  LaunchedJob job({"--workers", "1", "--starter", "process", "--program", "/bin/sh", "--", "-c",
                   "unset TRIREME_LAUNCH TRIREME_TASK_INDEX; " + command + " | head -n 3"});
  EXPECT_EQ(job.exit_code(20s), 0) << job.err();
  EXPECT_TRUE(has(job.err(), "closed by its reader")) << job.err();
  EXPECT_TRUE(job.is_gone_within(5s));
}

// Only the launcher has descriptor 9: tasks start without it.
std::size_t ranks_in_record(const std::string& options) {
  const TemporaryFolder folder;
  const std::string record = folder / "record.json";
  const CommandResult result = run_command(
      {"/bin/sh", "-c",
       "exec 9> \"$0\"; exec " TRIREME_BINARY " launch --workers 2 --oversubscribe " + options +
           " --model mnist --batch-size 2 --num-batches 2 --num-warmup-batches 1 --autotune off --record /dev/fd/9",
       record});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return read_record(record).at("steps").size();
}

TEST(LaunchRecord, IsWrittenByTheLauncher) {
  if (comm::has_transport("gRPC")) {
    EXPECT_EQ(ranks_in_record("-- bench --protocol grpc"), 2U);
  }
  if (comm::has_transport("MPI")) {
    EXPECT_EQ(ranks_in_record("-- bench --variable-update independent"), 2U);
  }
}

TEST(LaunchRecord, OfWorkersThatDoNotTalkIsTheFirstOnes) {
  EXPECT_EQ(ranks_in_record("--starter process -- bench --variable-update independent"), 1U);
}

// One line on stderr that has this part; nothing started.
void expect_refused(const std::vector<std::string>& arguments, int code, const std::string& part,
                    const std::vector<std::string>& environment = {}) {
  LaunchedJob job(arguments, environment);
  EXPECT_EQ(job.exit_code(), code) << job.err();
  EXPECT_EQ(job.out(), "");
  EXPECT_EQ(lines_of(job.err()).size(), 1U) << job.err();
  EXPECT_TRUE(has(job.err(), part)) << "expected '" << part << "' in: " << job.err();
}

TEST(LaunchRefuses, BadInputBeforeAnythingStarts) {
  expect_refused({"--workers", "4000", "--", "bench"}, 2, "4000 workers of 1 thread each need more than the ");
  expect_refused({"--workers", "1", "--threads-per-worker", "4000", "--", "bench"}, 2, "of 4000 threads");
  expect_refused({"--workers", "0", "--", "bench"}, 2, "--workers 0");
  expect_refused({"--workers", "1", "--threads-per-worker", "-1", "--", "bench"}, 2, "--threads-per-worker -1");
  expect_refused({"--", "bench"}, 2, "--workers");
  expect_refused({"--workers", "1"}, 2, "nothing to launch");
  expect_refused({"--workers", "1", "--"}, 2, "nothing to launch");
  expect_refused({"--workers", "1", "--", "benhc"}, 2, "unknown command 'benhc'");
  expect_refused({"--workers", "1", "--", "launch-task"}, 2, "unknown command 'launch-task'");
  expect_refused({"--workers", "1", "--", "bench", "--modle", "x"}, 2, "unknown option '--modle'");
  expect_refused({"--workers", "1", "--", "launch", "--workers", "1", "--", "bench"}, 2, "cannot be launched");
  expect_refused({"--workers", "1", "--starter", "ssh", "--", "bench"}, 2, "--starter ssh: must be one of");
  expect_refused({"--workers", "1", "--program", "/no/such/program"}, 2, "--program /no/such/program");
  expect_refused({"--workers", "1", "--program", "/etc/passwd"}, 2, "--program /etc/passwd");
  expect_refused({"--workers", "1", "--", "bench"}, 2, "started by Open MPI",
                 {"OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=2"});
  expect_refused({"--workers", "1", "--", "bench"}, 2, "started by trireme launch", {"TRIREME_LAUNCH=x"});
  expect_refused({"--workers", "1", "--", "bench", "--record", "/no/such/r.json"}, 2, "/no/such/r.json");
}

TEST(LaunchRefuses, AMissingMpirunIsNamedWithItsPackage) {
  expect_refused({"--workers", "1", "--", "bench"}, 3, "openmpi-bin", {"PATH=/no/such/folder"});
}

TEST(LaunchRefuses, AFolderForOutputThatCannotBe) {
  LaunchedJob job({"--workers", "1", "--output-dir", "/proc/output", "--", "bench"});
  EXPECT_EQ(job.exit_code(), 2);
  EXPECT_TRUE(has(job.err(), "--output-dir /proc/output")) << job.err();
}

TEST(LaunchDryRun, ShowsTheScriptOfASlurmJob) {
  LaunchedJob job({"--slurm", "--submit", "--nodes", "2", "--time", "1:00:00", "--account", "x y", "--cpus-per-task",
                   "3", "--sbatch=--gres=gpu:1", "--ps", "1", "--dry-run", "--", "bench"});
  EXPECT_EQ(job.exit_code(), 0) << job.err();
  for (const char* part :
       {"#SBATCH --nodes=2\n", "#SBATCH --time=1:00:00\n", "#SBATCH '--account=x y'\n", "#SBATCH --job-name=trireme\n",
        "#SBATCH --ntasks-per-node=1\n", "#SBATCH --cpus-per-task=3\n", "#SBATCH --gres=gpu:1\n",
        " launch --ps=1 --slurm -- bench\n"}) {
    EXPECT_TRUE(has(job.out(), part)) << part << " is not in " << job.out();
  }
  for (const char* part : {"--submit", "--sbatch", "--constraint", "--exclusive"}) {
    EXPECT_FALSE(has(job.out(), part)) << part << " is in " << job.out();
  }
}

TEST(LaunchDryRun, ShowsWhatWouldBeStarted) {
  LaunchedJob job({"--workers", "3", "--oversubscribe", "--dry-run", "--", "bench", "--model", "it's"});
  EXPECT_EQ(job.exit_code(), 0) << job.err();
  for (const char* part : {"-np 3", "launch-task", "[2] ", "TRIREME_TASK_INDEX=2", "bench --model 'it'\\''s'"}) {
    EXPECT_TRUE(has(job.out(), part)) << part << " is not in " << job.out();
  }
}

}  // namespace
}  // namespace trireme::testkit
