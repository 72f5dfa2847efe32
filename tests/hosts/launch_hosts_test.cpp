// `trireme launch --hosts`: jobs on several hosts, reached by a real sshd over a network of their own.
#include "tests/hosts/launch_hosts.hpp"

#include <gtest/gtest.h>
#include <signal.h>

#include "tests/distributed/bench_record.hpp"
#include "trireme/base/shell_text.hpp"

namespace trireme::testkit {
namespace {

using namespace std::chrono_literals;

TEST_F(LaunchHosts, EachTaskRunsOnItsHostAndKnowsWhereAllMeet) {
  LaunchedJob job(script_on("n0:1,n1:2,n2:1", 4,
                            "echo $(hostname) $TRIREME_TASK_INDEX of $TRIREME_TASK_COUNT $TRIREME_CLUSTER; exit 0"));
  EXPECT_EQ(job.exit_code(), 0) << job.err();
  for (const char* part :
       {"[0] n0 0 of 4", "[1] n1 1 of 4", "[2] n1 2 of 4", "[3] n2 3 of 4", ".11:2220", ".11:2221"}) {
    EXPECT_TRUE(has(job.out(), part)) << part << " is not in " << job.out();
  }
  EXPECT_TRUE(has(job.err(), "trireme: n1: reached")) << job.err();
  EXPECT_TRUE(has(job.err(), "2 workers on n1: ")) << job.err();
  EXPECT_TRUE(job.is_gone_within(1s));
  expect_nothing_left();
}

TEST_F(LaunchHosts, ABenchmarkTrainsWithAllReduceAndWithServers) {
  const Words bench{
      "--", "bench", "--model", "lenet", "--batch-size", "4", "--num-batches", "4", "--num-warmup-batches", "1"};
  Words all_reduce = on_hosts("n0,n1,n2", {"--workers", "3"});
  all_reduce.insert(all_reduce.end(), bench.begin(), bench.end());
  Words servers = on_hosts("n0,n1,n2", {"--workers", "3", "--ps", "2"});
  servers.insert(servers.end(), bench.begin(), bench.end());
  servers.insert(servers.end(), {"--variable-update", "parameter_server"});
  for (const Words& arguments : {all_reduce, servers}) {
    LaunchedJob job(arguments);
    EXPECT_EQ(job.exit_code(60s), 0) << job.err();
    EXPECT_TRUE(has(job.out(), "total images/sec")) << job.out();
  }
  expect_nothing_left();
}

TEST_F(LaunchHosts, StagesOfAPipelineGiveTheLossesOfOneHost) {
  const auto losses = [](const Words& launch, const Words& options) {
    const TemporaryFolder folder;
    Words words = launch;
    words.insert(words.end(), {"--", "bench", "--model", "mnist", "--deterministic", "--num-batches", "4", "--record",
                               folder / "record.json"});
    words.insert(words.end(), options.begin(), options.end());
    LaunchedJob job(words);
    EXPECT_EQ(job.exit_code(60s), 0) << job.err();
    return mean_losses(read_record(folder / "record.json"));
  };
  const Words pipeline{"--num-intra-threads", "1",          "--autotune",      "off", "--batch-size", "4",
                       "--parallel",          "pipeline:3", "--micro-batches", "4"};
  const auto here = losses({"--workers", "3", "--oversubscribe"}, pipeline);
  EXPECT_EQ(losses(on_hosts("n0,n1,n2", {"--workers", "3"}), pipeline), here);
  expect_nothing_left();
}

TEST_F(LaunchHosts, TheSecretIsInNoCommandLine) {
  LaunchedJob job(script_on("n0,n1", 2, "echo ready $TRIREME_JOB_SECRET; sleep 30"));
  ASSERT_TRUE(job.wait_for_output("[0] ready") && job.wait_for_output("[1] ready")) << job.err();
  const std::string out = job.out();
  const std::string secret = out.substr(out.find("ready ") + 6, 64);
  ASSERT_EQ(secret.find_first_not_of("0123456789abcdef"), std::string::npos) << out;
  for (const JobProcess& process : job.processes()) EXPECT_FALSE(has(process.command, secret)) << process.command;
  EXPECT_FALSE(has(cluster_.on("n0", "ps -eo args").output, secret));
  kill(job.pid(), SIGKILL);  // and whatever happens to the launcher, nothing stays on the hosts
  expect_nothing_left();
}

TEST_F(LaunchHosts, CtrlCReachesTheTasksAndTheirResultsComeBack) {
  LaunchedJob job(script_on("n0,n1", 2, "trap 'echo result; exit 130' INT; echo ready; while :; do sleep 0.05; done"));
  ASSERT_TRUE(job.wait_for_output("[0] ready") && job.wait_for_output("[1] ready")) << job.err();
  kill(-job.pid(), SIGINT);
  EXPECT_EQ(job.exit_code(10s), 130) << job.err();
  EXPECT_TRUE(has(job.out(), "[0] result") && has(job.out(), "[1] result")) << job.out();
  expect_nothing_left();
}

TEST_F(LaunchHosts, AFailingTaskEndsTheOthers) {
  LaunchedJob job(script_on("n0,n1,n2", 3, "sleep 0.3; [ $TRIREME_TASK_INDEX = 1 ] && exit 7; sleep 60 & wait"));
  EXPECT_EQ(job.exit_code(15s), 7) << job.err();
  EXPECT_TRUE(has(job.err(), "rank 1 (n1, pid ")) << job.err();
  expect_nothing_left(1);
}

TEST_F(LaunchHosts, AHostThatCrashesIsNamed) {
  LaunchedJob job(script_on("n0,n1,n2", 3, "echo ready; sleep 60"));
  ASSERT_TRUE(job.wait_for_output("[1] ready") && job.wait_for_output("[2] ready")) << job.err();
  cluster_.run("stop n1");
  EXPECT_NE(job.exit_code(20s), 0);
  EXPECT_TRUE(has(job.err(), "error: rank 1 (n1, pid ")) << job.err();
  cluster_.run("start n1");
  expect_nothing_left();
}

TEST_F(LaunchHosts, AGuardOfAHostIsReplacedAndItsSuccessorDoesItsWork) {
  LaunchedJob job(script_on("n0,n1", 2, "trap '' HUP; setsid sleep 60 & echo ready; sleep 60"));
  ASSERT_TRUE(job.wait_for_output("[0] ready") && job.wait_for_output("[1] ready")) << job.err();
  const CommandOutcome replaced =
      cluster_.on("n1",
                  "old=$(pgrep -f '[l]aunch-guard') && kill -KILL $old && for i in $(seq 50); do "
                  "new=$(pgrep -f '[l]aunch-guard') && [ \"$new\" != \"$old\" ] && exit 0; sleep 0.1; done; exit 1");
  EXPECT_EQ(replaced.code, 0) << replaced.output;
  cluster_.on("n1", "pkill -KILL -f '[l]aunch-host'");
  EXPECT_NE(job.exit_code(15s), 0);
  EXPECT_TRUE(has(job.err(), "error: rank 1 (n1, pid ")) << job.err();
  expect_nothing_left();
}

TEST_F(LaunchHosts, TheLastWordsOfAHostArriveThoughNobodyReadsForAWhile) {
  Words arguments =
      script_on("n0,n1", 2,
                "[ $TRIREME_TASK_INDEX = 1 ] || exec sleep 60; "
                "yes a line of many | head -c 1500000; echo last words; sleep 1; pkill -KILL -f launch-host");
  arguments.insert(arguments.begin(), {TRIREME_BINARY, "launch"});
  const CommandOutcome outcome = run_shell(fmt::format("({} | {{ sleep 4; cat; }})", shell_line(arguments)));
  EXPECT_TRUE(has(outcome.output, "[1] last words")) << outcome.output.substr(outcome.output.size() / 10 * 9);
  EXPECT_TRUE(has(outcome.output, "error: rank 1 (n1, pid ")) << outcome.output.substr(outcome.output.size() / 10 * 9);
  expect_nothing_left();
}

TEST_F(LaunchHosts, ShellsThatTalkAndFilesThatArePipesAreWelcome) {
  ASSERT_EQ(cluster_.on("n1", "mount -t tmpfs none ~ && echo 'echo; echo Welcome' > ~/.bashrc").code, 0);
  const std::string launch =
      shell_line({TRIREME_BINARY, "launch", "--ssh-config", cluster_.ssh_config(), "--oversubscribe"});
  const std::string rest = " --program /bin/sh -- -c 'echo on $(hostname)'";
  const CommandOutcome outcome =
      run_shell("bash -c " + shell_quoted(launch + " --hostfile <(echo n0; echo n1)" + rest));
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_TRUE(has(outcome.output, "[0] on n0") && has(outcome.output, "[1] on n1")) << outcome.output;
}

TEST_F(LaunchHosts, AHostWhoseCableIsPulledIsNamedAndEndsItsTasks) {
  LaunchedJob job(script_on("n0,n1,n2", 3, "echo ready; sleep 600"));
  ASSERT_TRUE(job.wait_for_output("[1] ready") && job.wait_for_output("[2] ready")) << job.err();
  cluster_.run("link n2 down");
  EXPECT_NE(job.exit_code(20s), 0);
  EXPECT_TRUE(has(job.err(), "error: rank 2 (n2, pid ")) << job.err();
  EXPECT_TRUE(has(job.err(), "nothing was received from its host")) << job.err();
  EXPECT_TRUE(job.is_gone_within(1s));
  expect_nothing_left(15);  // n2 notices by itself
}

TEST_F(LaunchHosts, HostsThatCannotBeUsedAreRefusedBeforeAnythingStarts) {
  const std::string script = "echo started";
  {
    cluster_.run("stop n1");
    LaunchedJob job(script_on("n0,n1", 2, script));
    EXPECT_EQ(job.exit_code(), 3);
    EXPECT_TRUE(has(job.err(), "error: n1: ssh cannot reach it: ")) << job.err();
    EXPECT_FALSE(has(job.out(), "started"));
    cluster_.run("start n1");
  }
  {
    run_shell("ssh-keygen -q -t ed25519 -N '' -f " + cluster_.folder() + "/other");
    run_shell("sed s,/id$,/other, " + cluster_.ssh_config() + " > " + cluster_.folder() + "/other_config");
    LaunchedJob job({"--ssh-config", cluster_.folder() + "/other_config", "--hosts", "n0", "--workers", "1",
                     "--program", "/bin/sh", "--", "-c", script});
    EXPECT_EQ(job.exit_code(), 3);
    EXPECT_TRUE(has(job.err(), "error: n0: ssh was refused: ")) << job.err();
  }
  {
    Words arguments = script_on("n0", 1, script);
    arguments.insert(arguments.begin(), {"--remote-program", "/nowhere/trireme"});
    LaunchedJob job(arguments);
    EXPECT_EQ(job.exit_code(), 3);
    EXPECT_TRUE(has(job.err(), "error: n0: /nowhere/trireme does not exist")) << job.err();
  }
  {
    cluster_.on("n1",
                "setsid python3 -c 'import socket,time; s=socket.create_server((\"\",2221)); time.sleep(60)' "
                ">/dev/null 2>&1 &");
    ASSERT_EQ(
        cluster_.on("n1", "for i in $(seq 100); do ss -ltn | grep -q :2221 && exit 0; sleep 0.1; done; exit 1").code,
        0);
    Words arguments = script_on("n0:1,n1:2", 3, script);
    arguments.insert(arguments.begin(), {"--worker-port", "2220"});
    LaunchedJob job(arguments);
    EXPECT_EQ(job.exit_code(), 3);
    EXPECT_TRUE(has(job.err(), "error: n1: --worker-port 2220: port 2221 is in use")) << job.err();
    cluster_.on("n1", "pkill python3");
  }
  expect_nothing_left();
}

TEST_F(LaunchHosts, TasksThatTalkMpiAreStartedByMpirunInTheOrderOfTasks) {
  Words arguments =
      script_on("n0:1,n1:2", 3, "echo rank $OMPI_COMM_WORLD_RANK of $OMPI_COMM_WORLD_SIZE on $(hostname)");
  arguments.insert(arguments.begin(), {"--starter", "mpi", "--ps", "2"});
  LaunchedJob job(arguments);
  EXPECT_EQ(job.exit_code(), 0) << job.err();
  for (const char* part : {"[worker 0] rank 0 of 5 on n0", "[worker 1] rank 1 of 5 on n1",
                           "[worker 2] rank 2 of 5 on n1", "[ps 0] rank 3 of 5 on n0", "[ps 1] rank 4 of 5 on n1"}) {
    EXPECT_TRUE(has(job.out(), part)) << part << " is not in " << job.out();
  }
  EXPECT_TRUE(job.is_gone_within(1s));
  expect_nothing_left();
}

TEST_F(LaunchHosts, ABenchmarkTrainsOverMpiLikeOneProcess) {
  const Words bench{"bench", "--model", "mnist", "--num-batches", "5", "--num-warmup-batches", "0"};
  const std::string record = cluster_.folder() + "/record.json";
  const auto losses = [&](RunningCommand&& command) {
    EXPECT_EQ(command.exit_code(60s), 0) << command.err();
    return mean_losses(read_record(record));
  };
  Words one = bench;
  one.insert(one.end(), {"--batch-size", "12", "--record", record});
  const auto expected = losses(RunningCommand(one));
  Words three = on_hosts("n0,n1,n2", {"--workers", "3", "--"});
  three.insert(three.end(), bench.begin(), bench.end());
  three.insert(three.end(), {"--batch-size", "4", "--protocol", "mpi", "--record", record});
  expect_same_losses(losses(LaunchedJob(three, {"OMPI_MCA_mpi_yield_when_idle=1"})), expected, 1e-4);
  expect_nothing_left();
}

TEST_F(LaunchHosts, AHostThatCrashesUnderMpiIsNamed) {
  Words arguments = script_on("n0,n1,n2", 3, "echo ready; sleep 60");
  arguments.insert(arguments.begin(), {"--starter", "mpi"});
  LaunchedJob job(arguments);
  ASSERT_TRUE(job.wait_for_output("[1] ready") && job.wait_for_output("[2] ready")) << job.err();
  cluster_.run("stop n1");
  EXPECT_NE(job.exit_code(20s), 0);
  EXPECT_TRUE(has(job.err(), "n1")) << job.err();
  EXPECT_TRUE(job.is_gone_within(1s));
  cluster_.run("start n1");
  expect_nothing_left();
}

}  // namespace
}  // namespace trireme::testkit
