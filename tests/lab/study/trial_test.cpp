// Trials are real processes here: shells that write what a benchmark would, or misbehave as one might.
#include "trireme/lab/study/trial.hpp"

#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "tests/support/temporary_folder.hpp"

namespace trireme::lab {
namespace {

using Ending = TrialResult::Ending;
using namespace std::chrono_literals;

constexpr const char* kRecord = R"({"schema": "trireme.run/1", "results": {"images_per_second": 12.5}})";

class Trial : public testing::Test {
 protected:
  TrialRequest request(const std::string& script) const {
    return {.command = {"/bin/sh", "-c", script},
            .scratch_folder = folder_ / "scratch",
            .log_file = folder_ / "log",
            .limit_seconds = 30};
  }
  TrialResult run(const std::string& script) const { return run_trial(request(script), {}); }
  // After the script come --record and its file, as $0 and $1.
  std::string writing(const std::string& text) const { return "printf '%s' '" + text + "' > \"$1\"; "; }
  // The script writes the number of a process there.
  pid_t noted_process() const {
    pid_t pid = 0;
    for (int i = 0; i < 1000 && pid == 0; ++i) {
      std::ifstream(folder_ / "pid") >> pid;
      if (pid == 0) std::this_thread::sleep_for(5ms);
    }
    return pid;
  }
  // A killed process may be seen until whoever adopts it looks.
  static bool is_gone(pid_t pid) {
    for (int i = 0; i < 1000; ++i) {
      std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
      const std::string status{std::istreambuf_iterator<char>(file), {}};
      if (kill(pid, 0) != 0 || status.find(") Z") != std::string::npos) return true;
      std::this_thread::sleep_for(5ms);
    }
    return false;
  }

  testkit::TemporaryFolder folder_;
};

TEST_F(Trial, IsToldTheLoadBeforeIt) {
  const TrialResult result = run("echo load $TRIREME_LOAD >&2; " + writing(kRecord));
  std::ifstream log(folder_ / "log");
  std::string word;
  double load = -1;
  log >> word >> load;
  EXPECT_NEAR(load, result.load_before, 0.01);
}

TEST_F(Trial, GivesTheRecordThatIsWrittenAndKeepsTheLog) {
  const TrialResult result = run(writing(kRecord) + "echo said >&2");
  EXPECT_EQ(result.ending, Ending::measured);
  EXPECT_EQ(result.record.images_per_second(), 12.5);
  std::ifstream log(folder_ / "log");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(log), {}), "said\n");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "scratch"));
}

TEST_F(Trial, AFailureIsOfTheKindThatTheExitCodeSays) {
  EXPECT_EQ(run("exit 1").error, ErrorKind::failed);
  EXPECT_EQ(run("exit 2").error, ErrorKind::bad_input);
  EXPECT_EQ(run("exit 3").error, ErrorKind::unavailable);
  EXPECT_EQ(run("kill -9 $$").error, ErrorKind::failed);
}

TEST_F(Trial, AFailureIsARecordWithTheErrorOfTheProgram) {
  const TrialResult result = run("echo first >&2; echo 'trireme: error: no room' >&2; echo last >&2; exit 1");
  EXPECT_EQ(result.ending, Ending::failed);
  EXPECT_EQ(result.record.error, "no room");
  EXPECT_EQ(result.record.schema, "trireme.run/1");
  EXPECT_FALSE(result.record.results.images_per_second);
  EXPECT_EQ(result.record.command.at(0), "/bin/sh");
  EXPECT_FALSE(result.record.started.empty());
}

TEST_F(Trial, TheErrorOfAWrittenRecordIsKept) {
  const TrialResult result =
      run(writing(R"({"schema": "trireme.run/1", "error": "its own", "results": {}})") + "exit 1");
  EXPECT_EQ(result.ending, Ending::failed);
  EXPECT_EQ(result.record.error, "its own");
}

TEST_F(Trial, AnExitCodeOfZeroIsNotEnough) {
  for (const std::string& written : {std::string("half a {"), std::string("[]"), std::string("{}"),
                                     std::string(R"({"schema": "other/1", "results": {"images_per_second": 1}})"),
                                     std::string(R"({"schema": "trireme.run/1", "results": null})"),
                                     std::string(R"({"schema": "trireme.run/1", "interrupted": true,
                                                     "results": {"images_per_second": 1}})")}) {
    const TrialResult result = run(writing(written));
    EXPECT_EQ(result.ending, Ending::failed) << written;
    EXPECT_EQ(result.record.error, "wrote no complete record") << written;
  }
}

TEST_F(Trial, ARecordBeforeAFailureDoesNotCount) {
  const TrialResult result = run(writing(kRecord) + "kill -SEGV $$");
  EXPECT_EQ(result.ending, Ending::failed);
  EXPECT_EQ(result.record.error, "was killed by signal 11 (SIGSEGV)");
}

TEST_F(Trial, EndsWhatRunsTooLongWithAllThatItStarted) {
  TrialRequest slow = request("sleep 60 & echo $! > " + (folder_ / "pid") + "; trap '' TERM; sleep 60; sleep 60");
  slow.limit_seconds = 0.2;
  slow.grace_seconds = 0.2;
  const TrialResult result = run_trial(slow, {});
  EXPECT_EQ(result.ending, Ending::failed);
  EXPECT_EQ(result.record.error, "ran longer than the limit of 0.2 s");
  EXPECT_TRUE(is_gone(noted_process()));
}

TEST_F(Trial, EndsWhatATrialLeavesBehind) {
  const TrialResult result = run("sleep 60 & echo $! > " + (folder_ / "pid") + "; " + writing(kRecord));
  EXPECT_EQ(result.ending, Ending::measured);
  EXPECT_TRUE(is_gone(noted_process()));
}

TEST_F(Trial, StopsWhenAsked) {
  std::stop_source source;
  std::jthread asking([&] {
    noted_process();
    source.request_stop();
  });
  const TrialResult result =
      run_trial(request("echo $$ > " + (folder_ / "pid") + "; exec sleep 60"), source.get_token());
  EXPECT_EQ(result.ending, Ending::interrupted);
  EXPECT_TRUE(result.record.started.empty());
  EXPECT_TRUE(is_gone(noted_process()));
}

}  // namespace
}  // namespace trireme::lab
