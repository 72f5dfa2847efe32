// However a launch ends, by Ctrl-C, by the death of any of its processes or of the launcher itself: nothing is left.
#include <gtest/gtest.h>
#include <signal.h>

#include <random>
#include <thread>

#include "tests/distributed/launched_job.hpp"

namespace trireme::testkit {
namespace {

using namespace std::chrono_literals;

std::vector<std::string> shell(const std::string& starter, const std::string& script, int workers = 3) {
  return {
      "--workers", std::to_string(workers), "--oversubscribe", "--starter", starter, "--program", "/bin/sh", "--", "-c",
      script};
}

class LaunchEnd : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(By, LaunchEnd, ::testing::Values("mpi", "process"),
                         [](const auto& chosen) { return chosen.param; });

TEST_P(LaunchEnd, CtrlCAsksEachWorkerOnceAndWaitsForItsResults) {
  LaunchedJob job(shell(GetParam(),
                        "n=0; trap 'n=$((n+1)); echo asked $n' INT TERM; echo ready; while [ $n = 0 ]; do sleep 0.02; "
                        "done; sleep 0.5; echo result; exit 130",
                        2));
  ASSERT_TRUE(job.wait_for_output("[0] ready") && job.wait_for_output("[1] ready"));
  kill(-job.pid(), SIGINT);  // to the group, as a terminal does
  EXPECT_EQ(job.exit_code(10s), 130);
  for (const char* part : {"[0] asked 1\n", "[1] asked 1\n", "[0] result\n", "[1] result\n"}) {
    EXPECT_TRUE(has(job.out(), part)) << part << " is not in " << job.out();
  }
  EXPECT_FALSE(has(job.out(), "asked 2")) << job.out();
  EXPECT_TRUE(has(job.err(), "interrupted")) << job.err();
  EXPECT_FALSE(has(job.err(), "error")) << job.err();
  EXPECT_TRUE(job.is_gone_within(1s));
}

TEST_P(LaunchEnd, ASecondCtrlCKills) {
  LaunchedJob job(shell(GetParam(), "trap '' INT TERM; echo ready; sleep 60", 2));
  ASSERT_TRUE(job.wait_for_output("[0] ready") && job.wait_for_output("[1] ready"));
  kill(job.pid(), SIGINT);
  ASSERT_TRUE(job.wait_for_output("interrupt again to end at once"));
  kill(job.pid(), SIGINT);
  EXPECT_EQ(job.exit_code(5s), 130);
  EXPECT_TRUE(job.is_gone_within(1s));
}

TEST_P(LaunchEnd, ATerminationRequestIsPassedOn) {
  LaunchedJob job(shell(GetParam(), "trap 'echo told; exit 0' TERM; echo ready; while :; do sleep 0.02; done", 2));
  ASSERT_TRUE(job.wait_for_output("[0] ready") && job.wait_for_output("[1] ready"));
  kill(job.pid(), SIGTERM);
  EXPECT_EQ(job.exit_code(10s), 130);
  EXPECT_TRUE(has(job.out(), "[0] told\n") && has(job.out(), "[1] told\n")) << job.out();
}

TEST_P(LaunchEnd, AnInterruptedBenchmarkGivesItsResults) {
  LaunchedJob job({"--workers", "2", "--oversubscribe", "--starter", GetParam(), "--", "bench", "--model", "mnist",
                   "--batch-size", "4", "--num-batches", "1000000", "--autotune", "off", "--display-every", "1"});
  ASSERT_TRUE(job.wait_for_output("[0] 1\timages/sec"));
  kill(job.pid(), SIGINT);
  EXPECT_EQ(job.exit_code(20s), 130) << job.err();
  EXPECT_TRUE(has(job.out(), "[0] total images/sec")) << job.out();
  EXPECT_TRUE(job.is_gone_within(1s));
}

// The workers have children of their own, one of which has left the session, and ask for no end.
constexpr const char* kClinging = "trap '' INT TERM HUP; sleep 60 & setsid sleep 60 & echo up; wait";

TEST_P(LaunchEnd, AKilledLauncherLeavesNothing) {
  for (const auto delay : {0ms, 20ms, 60ms, 120ms, 250ms, 500ms}) {
    LaunchedJob job(shell(GetParam(), kClinging));
    std::this_thread::sleep_for(delay);
    job.processes();  // learns the folder to look for
    kill(job.pid(), SIGKILL);
    EXPECT_EQ(job.exit_code(1s), 128 + 9);
    EXPECT_TRUE(job.is_gone_within(5s)) << delay.count() << " ms after the start";
  }
}

// A guard alone is no loss, but without one a killed launcher would leave something.
TEST_P(LaunchEnd, AKilledGuardIsReplacedAndItsSuccessorDoesItsWork) {
  LaunchedJob job(shell(GetParam(), kClinging));
  ASSERT_TRUE(job.wait_for_output("[2] up"));
  const auto guard = [&] {
    for (const JobProcess& process : job.processes()) {
      if (has(process.command, " launch-guard ")) return process.pid;
    }
    return pid_t{0};
  };
  const pid_t first = guard();
  ASSERT_NE(first, 0);
  kill(first, SIGKILL);
  EXPECT_TRUE(job.wait_for_output("was killed by signal 9 (SIGKILL); it was replaced", 5s)) << job.err();
  ASSERT_TRUE(wait_until([&] { return guard() != 0 && guard() != first; }, 5s)) << job.err();
  kill(job.pid(), SIGKILL);
  EXPECT_TRUE(job.is_gone_within(5s));
}

// Asks twice, as for workers that do not listen. What comes before the workers run ends the launch at once.
void end_by_hand(const LaunchedJob& job) {
  kill(job.pid(), SIGTERM);
  if (job.wait_for_output("interrupt again to end at once", 2s)) kill(job.pid(), SIGTERM);
}

// Kills one process of the job at a random moment of its life: at the start, in the middle, at the end.
TEST_P(LaunchEnd, AKilledProcessEndsTheJobAndIsNamed) {
  std::mt19937 random(20240229);
  for (int round = 0; round < 16; ++round) {
    const bool ends_soon = round % 4 == 3;
    LaunchedJob job(shell(GetParam(), ends_soon ? "sleep 0.2; echo done" : kClinging));
    std::this_thread::sleep_for(std::chrono::milliseconds(std::uniform_int_distribution<int>(0, 400)(random)));
    auto candidates = job.processes();
    // Nor a copy of it that has not become another program yet: nobody can tell which one that would be.
    std::erase_if(candidates, [&](const JobProcess& process) {
      return process.pid == job.pid() || process.command.find(" launch --workers ") != std::string::npos;
    });
    if (candidates.empty()) continue;  // over, or not begun
    const JobProcess victim = candidates[random() % candidates.size()];
    kill(victim.pid, SIGKILL);
    const std::string story = "round " + std::to_string(round) + ", killed: " + victim.command + ", said: ";

    if (victim.command.find(" launch-guard ") != std::string::npos || victim.command.rfind("sleep", 0) == 0) {
      // The job does without it.
      if (!ends_soon) end_by_hand(job);
      EXPECT_GE(job.exit_code(5s), 0) << story << job.err();
    } else {
      const int code = job.exit_code(5s);
      if (!ends_soon) {
        EXPECT_NE(code, 0) << story << job.err();
      }
      if (code != 0) {
        EXPECT_TRUE(has(job.err(), "trireme: error: ")) << story << job.err();
      }
      if (code != 0 && victim.rank >= 0) {
        EXPECT_TRUE(has(job.err(), "error: rank " + std::to_string(victim.rank) + " (")) << story << job.err();
      }
    }
    EXPECT_TRUE(job.is_gone_within(1s)) << story << job.err();
  }
}

// Of the tasks' programs only, which is what a user or the kernel's memory killer hits: the rank is always named.
TEST_P(LaunchEnd, AKilledWorkerIsNamed) {
  std::mt19937 random(7);
  for (int round = 0; round < 10; ++round) {
    LaunchedJob job(shell(GetParam(), "sleep 60"));
    const auto programs = job.programs(3);
    ASSERT_EQ(programs.size(), 3U) << job.err();
    const JobProcess& victim = programs[random() % 3];
    kill(victim.pid, SIGKILL);
    EXPECT_EQ(job.exit_code(5s), 128 + 9);
    EXPECT_TRUE(has(job.err(), "trireme: error: rank " + std::to_string(victim.rank) + " (")) << job.err();
    EXPECT_TRUE(has(job.err(), "pid " + std::to_string(victim.pid) + ") was killed by signal 9")) << job.err();
    EXPECT_TRUE(job.is_gone_within(1s));
  }
}

}  // namespace
}  // namespace trireme::testkit
