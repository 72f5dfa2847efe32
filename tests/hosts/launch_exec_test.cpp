// `trireme launch --exec`: everything of the job on a host is inside of what a prefix starts. The prefixes here are
// parts of what containers are made of, and are on every machine.
#include <gtest/gtest.h>
#include <signal.h>

#include "tests/hosts/launch_hosts.hpp"

namespace trireme::testkit {
namespace {

using namespace std::chrono_literals;

class LaunchExec : public LaunchHosts {
 protected:
  static constexpr const char* kOwnProcesses = "unshare --pid --fork --kill-child --mount-proc";

  Words inside(const std::string& prefix, Words rest) const {
    rest.insert(rest.begin(), {"--exec", prefix, "--remote-program", TRIREME_BINARY});
    return on_hosts("n0,n1", rest);
  }
  Words script_inside(const std::string& prefix, const std::string& script) const {
    return inside(prefix, {"--program", "/bin/sh", "--", "-c", script});
  }
};

TEST_F(LaunchExec, TasksAndChecksAreInside) {
  LaunchedJob job(script_inside("unshare --uts sh -c 'hostname inside-$(hostname); exec \"$@\"' sh",
                                "echo $(hostname) $TRIREME_CLUSTER"));
  EXPECT_EQ(job.exit_code(), 0) << job.err();
  EXPECT_TRUE(has(job.out(), "[0] inside-n0 ") && has(job.out(), "[1] inside-n1 ")) << job.out();
  EXPECT_TRUE(has(job.out(), ".10:2220") && has(job.out(), ".11:2220")) << job.out();
  expect_nothing_left();
}

TEST_F(LaunchExec, ABenchmarkRunsInItsOwnProcessesAndMounts) {
  LaunchedJob job(inside(std::string(kOwnProcesses) + " --ipc",
                         {"--ps", "1", "--", "bench", "--model", "lenet", "--batch-size", "4", "--num-batches", "3",
                          "--num-warmup-batches", "1", "--variable-update", "parameter_server"}));
  EXPECT_EQ(job.exit_code(60s), 0) << job.err();
  EXPECT_TRUE(has(job.out(), "total images/sec")) << job.out();
  expect_nothing_left();
}

TEST_F(LaunchExec, WhatIsPrintedOnTheWayIsSkipped) {
  LaunchedJob job(script_inside("sh -c 'echo; echo Welcome to $(hostname); exec \"$@\"' sh", "echo on $(hostname)"));
  EXPECT_EQ(job.exit_code(), 0) << job.err();
  EXPECT_TRUE(has(job.out(), "[0] on n0") && has(job.out(), "[1] on n1")) << job.out();
  EXPECT_FALSE(has(job.out() + job.err(), "Welcome")) << job.out() << job.err();
  expect_nothing_left();
}

TEST_F(LaunchExec, AHostThatDoesNotStopPrintingIsNamedAtOnce) {
  LaunchedJob job(script_inside("sh -c 'case \"$*\" in *launch-host*) exec yes ;; *) exec \"$@\" ;; esac' sh", "true"));
  EXPECT_NE(job.exit_code(15s), 0);
  EXPECT_TRUE(has(job.err(), "its host sent something that is not from a launcher")) << job.err();
  expect_nothing_left();
}

TEST_F(LaunchExec, WhoeverIsKilledNothingStays) {
  {
    LaunchedJob job(script_inside(kOwnProcesses, "echo ready; sleep 600"));
    ASSERT_TRUE(job.wait_for_output("[0] ready") && job.wait_for_output("[1] ready")) << job.err();
    kill(job.pid(), SIGKILL);
    expect_nothing_left();
  }
  LaunchedJob job(script_inside(kOwnProcesses, "echo ready; sleep 600"));
  ASSERT_TRUE(job.wait_for_output("[0] ready") && job.wait_for_output("[1] ready")) << job.err();
  cluster_.on("n1", "pkill -KILL -f launch-host");  // the first process of the container
  EXPECT_NE(job.exit_code(20s), 0);
  EXPECT_TRUE(has(job.err(), "error: rank 1 (n1, pid ")) << job.err();
  // A container that is killed leaves its shared memory to those who made it; this one has its host's.
  cluster_.on("n1", "rm -rf /dev/shm/trireme-*");
  expect_nothing_left();
}

TEST_F(LaunchExec, AContainerThatIsNotAsNeededIsExplained) {
  const std::string script = "echo started";
  const auto refusal = [&](const std::string& prefix) {
    LaunchedJob job(script_inside(prefix, script));
    EXPECT_NE(job.exit_code(), 0);
    EXPECT_FALSE(has(job.out(), "started")) << prefix;
    return job.err();
  };
  EXPECT_TRUE(has(refusal("unshare --net"), "n0 was reached at ")) << "without its host's network";
  EXPECT_TRUE(has(refusal("sh -c 'exec \"$@\" </dev/null' sh"), "n0: does not receive the launcher's input"));
  EXPECT_TRUE(has(refusal("no-such-runtime exec"), "n1: the command of --exec, or trireme in it, does not exist"));
  EXPECT_TRUE(
      has(refusal("sh -c 'echo Error: no such image >&2; exit 125'"), "cannot be started: Error: no such image"));
  EXPECT_TRUE(has(refusal("env 'X=1"), "the quote ' is not closed"));
  expect_nothing_left();
}

}  // namespace
}  // namespace trireme::testkit
