// Each kind of process that a job on several hosts consists of, killed: the job ends, names the task that was lost
// with it, and leaves nothing on any host.
#include <gtest/gtest.h>
#include <signal.h>

#include <thread>

#include "tests/hosts/launch_hosts.hpp"

namespace trireme::testkit {
namespace {

using namespace std::chrono_literals;

struct Victim {
  const char* name;
  const char* pattern;  // of its command line, on n1; a bracket, so that it is not that of who looks for it
};

class LaunchKill : public LaunchHosts, public ::testing::WithParamInterface<Victim> {};
INSTANTIATE_TEST_SUITE_P(Of, LaunchKill,
                         ::testing::Values(Victim{"AProgram", "[e]cho ready; trap"},
                                           Victim{"ARunner", "[l]aunch-task --task 1"},
                                           Victim{"AnAgent", "[l]aunch-host "}, Victim{"AnSshd", "[s]shd: .*notty"}),
                         [](const auto& victim) { return victim.param.name; });

// The tasks have children, one of which has left the session, and ask for no end.
constexpr const char* kClinging = "echo ready; trap '' INT TERM HUP; sleep 60 & setsid sleep 60 & wait";

TEST_P(LaunchKill, NamesItsTaskAndLeavesNothing) {
  LaunchedJob job(script_on("n0,n1,n2", 3, kClinging));
  ASSERT_TRUE(job.wait_for_output("[1] ready") && job.wait_for_output("[2] ready")) << job.err();
  const CommandOutcome killed = cluster_.on("n1", fmt::format("pkill -KILL -f '{}'", GetParam().pattern));
  ASSERT_EQ(killed.code, 0) << killed.output;
  EXPECT_NE(job.exit_code(20s), 0);
  EXPECT_TRUE(has(job.err(), "trireme: error: rank 1 (n1, pid ")) << job.err();
  EXPECT_TRUE(job.is_gone_within(2s));
  expect_nothing_left(15);
}

TEST_F(LaunchHosts, AKilledRelayNamesItsTaskAndLeavesNothing) {
  LaunchedJob job(script_on("n0,n1,n2", 3, kClinging));
  ASSERT_TRUE(job.wait_for_output("[1] ready") && job.wait_for_output("[2] ready")) << job.err();
  pid_t relay = 0;
  for (const JobProcess& process : job.processes()) {
    if (has(process.command, " launch-relay ") && has(process.command, " n1 ")) relay = process.pid;
  }
  ASSERT_NE(relay, 0);
  kill(relay, SIGKILL);
  EXPECT_NE(job.exit_code(20s), 0);
  EXPECT_TRUE(has(job.err(), "trireme: error: rank 1 (n1, pid ")) << job.err();
  EXPECT_TRUE(job.is_gone_within(2s));
  expect_nothing_left(15);
}

// The relays go on telling the hosts that they are there, for longer than these wait.
TEST_F(LaunchHosts, AStoppedLauncherKeepsItsTasks) {
  LaunchedJob job(script_on("n0,n1", 2, "echo ready; sleep 14; echo done"));
  ASSERT_TRUE(job.wait_for_output("[0] ready") && job.wait_for_output("[1] ready")) << job.err();
  kill(job.pid(), SIGSTOP);
  std::this_thread::sleep_for(11s);
  EXPECT_EQ(cluster_.on("n1", "pgrep -f '[s]leep 14'").code, 0);
  kill(job.pid(), SIGCONT);
  EXPECT_EQ(job.exit_code(20s), 0) << job.err();
  EXPECT_TRUE(has(job.out(), "[0] done") && has(job.out(), "[1] done")) << job.out();
  expect_nothing_left();
}

}  // namespace
}  // namespace trireme::testkit
