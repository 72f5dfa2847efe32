// `trireme launch --ps`: parameter servers beside workers, as the launcher sees them. The tasks are small scripts.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <regex>

#include "tests/distributed/launched_job.hpp"
#include "trireme/base/unique_fd.hpp"
#include "trireme/comm/cluster_spec.hpp"

namespace trireme::testkit {
namespace {

using namespace std::chrono_literals;

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// Arguments that run this shell script as each of 2 workers and 2 servers.
Words shell(const std::string& script, Words options = {}) {
  Words words{"--workers", "2", "--ps", "2", "--oversubscribe"};
  words.insert(words.end(), options.begin(), options.end());
  words.insert(words.end(), {"--program", "/bin/sh", "--", "-c", script});
  return words;
}

// A script that does one thing as a worker, and another as a server.
std::string by_role(const std::string& worker, const std::string& server) {
  return "if [ $TRIREME_TASK_ROLE = ps ]; then " + server + "; else " + worker + "; fi";
}

// What follows "NAME=" up to the next space in the first line that has this part.
std::string value_in(const std::string& text, const std::string& line_part, const std::string& name) {
  const std::size_t line = text.find(line_part);
  const std::size_t at = line == std::string::npos ? line : text.find(name + "=", line);
  if (at == std::string::npos) return "";
  const std::size_t begin = at + name.size() + 1;
  return text.substr(begin, text.find_first_of(" \n", begin) - begin);
}

// A port of this machine that is listened on for as long as the object lives.
class TakenPort {
 public:
  TakenPort() : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    if (bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 || listen(socket_.get(), 1) != 0 ||
        getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
      ADD_FAILURE() << "cannot listen";
    }
    number_ = ntohs(address.sin_port);
  }
  int number() const { return number_; }

 private:
  UniqueFd socket_;
  int number_ = 0;
};

TEST(LaunchServers, EachTaskKnowsItsRoleTheClusterAndTheSecret) {
  LaunchedJob job(
      shell("echo role=$TRIREME_TASK_ROLE index=$TRIREME_TASK_INDEX count=$TRIREME_TASK_COUNT "
            "secret=$TRIREME_JOB_SECRET gpu=${CUDA_VISIBLE_DEVICES-any} mpi=${OMPI_COMM_WORLD_RANK-none} "
            "cluster=$TRIREME_CLUSTER"));
  ASSERT_EQ(job.exit_code(), 0) << job.err();
  const std::string out = job.out();
  EXPECT_TRUE(has(job.err(), "2 workers and 2 ps on ")) << job.err();
  const std::string secret = value_in(out, "[worker 0]", "secret");
  EXPECT_TRUE(std::regex_match(secret, std::regex("[0-9a-f]{64}"))) << secret;
  const std::string cluster = value_in(out, "[worker 0]", "cluster");
  const comm::ClusterSpec spec = comm::cluster_from_json(cluster, "TRIREME_CLUSTER").spec;
  EXPECT_EQ(spec.workers.size(), 2U);
  EXPECT_EQ(spec.servers.size(), 2U);
  for (const std::string& address : spec.workers) EXPECT_TRUE(address.starts_with("127.0.0.1:")) << address;
  for (int rank = 0; rank < spec.size(); ++rank) {
    const comm::TaskPlace place = spec.place_of(rank);
    const std::string line = fmt::format("[{}] ", to_string(place));
    EXPECT_EQ(value_in(out, line, "role"), place.job) << out;
    EXPECT_EQ(value_in(out, line, "index"), std::to_string(place.index)) << out;
    EXPECT_EQ(value_in(out, line, "count"), "2") << out;
    EXPECT_EQ(value_in(out, line, "gpu"), place.is_server() ? "" : "any") << out;
    EXPECT_EQ(value_in(out, line, "mpi"), "none") << "servers are not MPI's: " << out;
    EXPECT_EQ(value_in(out, line, "secret"), secret) << out;
    EXPECT_EQ(value_in(out, line, "cluster"), cluster) << out;
  }
  EXPECT_TRUE(job.is_gone_within(1s));
}

TEST(LaunchServers, TheSecretIsInNoCommandLineAndDiffersFromJobToJob) {
  const std::string script = "echo secret=$TRIREME_JOB_SECRET; sleep 30";
  LaunchedJob first(shell(script)), second(shell(script));
  ASSERT_TRUE(first.wait_for_output("[ps 1] secret") && second.wait_for_output("[worker 0] secret"));
  ASSERT_TRUE(first.wait_for_output("[worker 0] secret"));
  const std::string secret = value_in(first.out(), "[worker 0]", "secret");
  EXPECT_EQ(secret.size(), 64U);
  EXPECT_NE(secret, value_in(second.out(), "[worker 0]", "secret"));
  for (const JobProcess& process : first.processes()) EXPECT_FALSE(has(process.command, secret)) << process.command;
}

TEST(LaunchServers, LaunchesBesideEachOtherHavePortsOfTheirOwn) {
  const std::string script = "echo cluster=$TRIREME_CLUSTER; sleep 30";
  LaunchedJob first(shell(script)), second(shell(script));
  std::vector<std::string> addresses;
  for (const LaunchedJob* job : {&first, &second}) {
    ASSERT_TRUE(job->wait_for_output("[worker 0] cluster")) << job->err();
    const auto spec = comm::cluster_from_json(value_in(job->out(), "[worker 0]", "cluster"), "cluster").spec;
    addresses.insert(addresses.end(), spec.workers.begin(), spec.workers.end());
    addresses.insert(addresses.end(), spec.servers.begin(), spec.servers.end());
  }
  std::sort(addresses.begin(), addresses.end());
  EXPECT_EQ(std::unique(addresses.begin(), addresses.end()), addresses.end());
}

TEST(LaunchServers, ServersThatLeaveByThemselvesEndTheJobInPeace) {
  LaunchedJob job(shell(by_role("echo trained", "sleep 0.5; echo left")));
  EXPECT_EQ(job.exit_code(10s), 0) << job.err();
  EXPECT_TRUE(has(job.out(), "[ps 0] left") && has(job.out(), "[ps 1] left")) << job.out();
  EXPECT_FALSE(has(job.err(), "did not exit")) << job.err();
  EXPECT_TRUE(job.is_gone_within(1s));
}

TEST(LaunchServers, ServersThatStayAreEndedAndThatIsNoFailure) {
  LaunchedJob job(shell(by_role("echo trained", "trap 'echo asked; exit 143' TERM; while :; do sleep 0.02; done")));
  EXPECT_EQ(job.exit_code(20s), 0) << job.err();
  EXPECT_TRUE(has(job.err(), "trireme: the workers are done; ps 0 and ps 1 did not exit and will be stopped"))
      << job.err();
  EXPECT_TRUE(has(job.out(), "[ps 0] asked") && has(job.out(), "[ps 1] asked")) << job.out();
  EXPECT_FALSE(has(job.err(), "error")) << job.err();
  EXPECT_TRUE(job.is_gone_within(1s));
}

TEST(LaunchServers, ALostServerEndsTheJobWithItsName) {
  // A worker fails at the same moment, as it does when the connection goes.
  for (const Words& options : {Words{}, Words{"--keep-going"}}) {
    LaunchedJob job(
        shell(by_role("if [ $TRIREME_TASK_INDEX = 1 ]; then sleep 30; fi; until [ -s $TMPDIR/pid ]; do sleep "
                      "0.02; done; kill -9 $(cat $TMPDIR/pid); rm $TMPDIR/pid; exit 4",
                      "if [ $TRIREME_TASK_INDEX = 1 ]; then echo $$ > $TMPDIR/pid; fi; sleep 30"),
              options));
    EXPECT_EQ(job.exit_code(10s), 128 + 9) << job.err();
    EXPECT_TRUE(has(job.err(), "trireme: error: ps 1 (")) << job.err();
    EXPECT_TRUE(has(job.err(), "was killed by signal 9 (SIGKILL)")) << job.err();
    EXPECT_EQ(count_of(job.err(), "trireme: error"), 1U) << job.err();
    EXPECT_FALSE(has(job.err(), "the others continue")) << job.err();
    EXPECT_TRUE(job.is_gone_within(1s));
  }
}

TEST(LaunchServers, ALostWorkerEndsAJobThatCannotDoWithoutIt) {
  LaunchedJob job(shell(by_role("if [ $TRIREME_TASK_INDEX = 1 ]; then kill -9 $$; fi; sleep 30", "sleep 30")));
  EXPECT_EQ(job.exit_code(10s), 128 + 9);
  EXPECT_TRUE(has(job.err(), "trireme: error: worker 1 (")) << job.err();
}

TEST(LaunchServers, AJobThatSurvivesGoesOnWithoutALostWorker) {
  const std::string until_end = "until [ -e $TMPDIR/end ]; do sleep 0.02; done";
  LaunchedJob job(shell(by_role("echo up; " + until_end + "; echo trained", until_end), {"--keep-going"}));
  const auto programs = job.programs(4);
  ASSERT_EQ(programs.size(), 4U);
  ASSERT_TRUE(job.wait_for_output("[worker 1] up"));
  kill(programs[1].pid, SIGKILL);
  ASSERT_TRUE(job.wait_for_output("was killed by signal 9 (SIGKILL); the others continue")) << job.err();
  EXPECT_TRUE(has(job.err(), "trireme: worker 1 (")) << job.err();
  std::ofstream(job.temporary_folder() / "end");
  EXPECT_EQ(job.exit_code(10s), 0) << job.err();
  std::filesystem::remove(job.temporary_folder() / "end");
  EXPECT_TRUE(has(job.out(), "[worker 0] trained")) << job.out();
  EXPECT_TRUE(has(job.err(), "trireme: worker 1 was lost during the run")) << job.err();
  EXPECT_FALSE(has(job.err(), "error")) << job.err();
  EXPECT_TRUE(job.is_gone_within(1s));
}

TEST(LaunchServers, AKilledRunnerIsALostWorkerToo) {
  LaunchedJob job(
      shell(by_role("echo up; if [ $TRIREME_TASK_INDEX = 0 ]; then sleep 1; else sleep 30; fi", "sleep 1.5"),
            {"--keep-going"}));
  ASSERT_TRUE(job.wait_for_output("[worker 1] up") && job.wait_for_output("[worker 0] up"));
  for (const JobProcess& process : job.processes()) {
    if (has(process.command, "launch-task --task 1")) kill(process.pid, SIGKILL);
  }
  EXPECT_EQ(job.exit_code(15s), 0) << job.err();
  EXPECT_TRUE(has(job.err(), "was lost: its connection ended unexpectedly; the others continue")) << job.err();
  EXPECT_TRUE(job.is_gone_within(1s));
}

TEST(LaunchServers, AJobWithoutWorkersEnds) {
  LaunchedJob job(shell(by_role("sleep 0.$TRIREME_TASK_INDEX; sleep 0.5; exit 5", "sleep 30"), {"--keep-going"}));
  EXPECT_EQ(job.exit_code(10s), 5) << job.err();
  EXPECT_TRUE(has(job.err(), "trireme: error: worker ")) << job.err();
  EXPECT_TRUE(job.is_gone_within(1s));
}

TEST(LaunchServers, WrongInputIsNothingToSurvive) {
  LaunchedJob job(
      shell(by_role("if [ $TRIREME_TASK_INDEX = 1 ]; then exit 2; fi; sleep 30", "sleep 30"), {"--keep-going"}));
  EXPECT_EQ(job.exit_code(10s), 2) << job.err();
}

TEST(LaunchServers, CtrlCAsksTheWorkersAndLeavesThemTheirServers) {
  LaunchedJob job(shell(by_role("trap 'sleep 0.3; echo result; exit 130' INT; echo ready; while :; do sleep 0.02; done",
                                "trap 'echo asked' INT; echo ready; sleep 1; sleep 1")));
  for (const char* task : {"[worker 0]", "[worker 1]", "[ps 0]", "[ps 1]"}) {
    ASSERT_TRUE(job.wait_for_output(std::string(task) + " ready"));
  }
  kill(job.pid(), SIGINT);
  EXPECT_EQ(job.exit_code(10s), 130) << job.err();
  EXPECT_TRUE(has(job.out(), "[worker 0] result") && has(job.out(), "[worker 1] result")) << job.out();
  EXPECT_FALSE(has(job.out(), "asked")) << job.out();
}

TEST(LaunchServers, OutputFilesAreNamedByRole) {
  const TemporaryFolder folder;
  LaunchedJob job(shell("echo me", {"--output-dir", folder.path().string()}));
  EXPECT_EQ(job.exit_code(10s), 0) << job.err();
  for (const char* name : {"worker-0.out", "worker-1.out", "ps-0.out", "ps-1.out"}) {
    std::ifstream file(folder.path() / name);
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "me\n") << name;
  }
}

// Nothing is started: what --dry-run prints on stdout and stderr.
struct Plan {
  std::string out, err;
};

Plan dry_run(Words words) {
  words.insert(words.begin(), "--dry-run");
  LaunchedJob job(words);
  EXPECT_EQ(job.exit_code(), 0) << job.err();
  return {job.out(), job.err()};
}

TEST(LaunchServersDryRun, ShowsTheTasksButNotTheSecret) {
  const Plan plan = dry_run({"--workers", "2", "--ps", "1", "--oversubscribe", "--", "bench", "--async"});
  for (const char* part : {"launch-task --task 2", "[worker 1] ", "[ps 0] ", "TRIREME_JOB_SECRET=... ",
                           "TRIREME_TASK_ROLE=ps", "CUDA_VISIBLE_DEVICES=''", "TRIREME_CLUSTER='{"}) {
    EXPECT_TRUE(has(plan.out, part)) << part << " is not in " << plan.out;
  }
  EXPECT_FALSE(std::regex_search(plan.out, std::regex("SECRET=[0-9a-f]"))) << plan.out;
  EXPECT_FALSE(has(plan.out, "mpirun")) << plan.out;
  EXPECT_TRUE(has(plan.err, "2 workers and 1 ps on ")) << plan.err;
}

TEST(LaunchServersDryRun, TheStarterIsTheOneThatTheProtocolNeeds) {
  const auto plan = [](const Words& launch, const Words& bench) {
    Words words{"--workers", "2", "--oversubscribe"};
    words.insert(words.end(), launch.begin(), launch.end());
    words.insert(words.end(), {"--", "bench"});
    words.insert(words.end(), bench.begin(), bench.end());
    return dry_run(words).out;
  };
  const std::string mpi = plan({}, {});
  EXPECT_TRUE(has(mpi, "-np 2") && !has(mpi, "TRIREME_CLUSTER")) << mpi;
  const std::string grpc = plan({}, {"--protocol", "grpc"});
  EXPECT_TRUE(!has(grpc, "-np") && has(grpc, "TRIREME_CLUSTER")) << grpc;
  const std::string both = plan({"--ps", "1"}, {"--protocol=grpc+mpi"});
  EXPECT_TRUE(has(both, "-np 3") && has(both, "TRIREME_CLUSTER")) << both;
  const std::string forced = plan({"--starter", "mpi"}, {"--protocol", "grpc+ucx"});
  EXPECT_TRUE(has(forced, "-np 2") && has(forced, "TRIREME_CLUSTER")) << forced;
}

TEST(LaunchServersDryRun, PortsAreThoseAskedForOrTheNextFreeOnes) {
  const TakenPort taken;
  LaunchedJob refused(
      {"--workers", "1", "--ps", "1", "--oversubscribe", "--ps-port", std::to_string(taken.number()), "--", "bench"});
  EXPECT_EQ(refused.exit_code(), 2);
  EXPECT_TRUE(has(refused.err(), "--ps-port " + std::to_string(taken.number()) + ": port " +
                                     std::to_string(taken.number()) + " is in use"))
      << refused.err();
}

TEST(LaunchServersDryRun, MoreServersThanWorkersIsAWarning) {
  EXPECT_TRUE(has(dry_run({"--workers", "1", "--ps", "2", "--oversubscribe", "--", "bench"}).err,
                  "trireme: warning: 2 servers for 1 worker"));
}

void expect_refused(const Words& arguments, const std::string& part) {
  LaunchedJob job(arguments);
  EXPECT_EQ(job.exit_code(), 2) << job.err();
  EXPECT_EQ(job.out(), "");
  EXPECT_EQ(count_of(job.err(), "\n"), 1U) << job.err();
  EXPECT_TRUE(has(job.err(), part)) << "expected '" << part << "' in: " << job.err();
}

TEST(LaunchServersRefuses, WhatDoesNotSuitServers) {
  const Words common{"--workers", "2", "--ps", "1", "--oversubscribe"};
  const auto refused = [&](Words more, const std::string& part) {
    more.insert(more.begin(), common.begin(), common.end());
    expect_refused(more, part);
  };
  refused({"--", "models"}, "--ps: `models` does not use parameter servers");
  refused({"--", "bench", "--variable-update", "all_reduce"}, "leave out --ps");
  refused({"--", "bench", "--protocol", "mpi"}, "--protocol mpi does not support parameter servers");
  refused({"--", "bench", "--protocol", "http"}, "--protocol http: must be one of auto, mpi, grpc, grpc+ucx, grpc+mpi");
  refused({"--", "bench", "--worker-hosts", "a:1"}, "--worker-hosts: `trireme launch` tells its tasks");
  refused({"--", "bench", "--secret-file", "x"}, "--secret-file: `trireme launch` tells its tasks");
  refused({"--", "bench", "--backup-workers", "2"}, "--backup-workers 2: must be from 0 to 1");
  refused({"--starter", "process", "--", "bench", "--protocol", "grpc+mpi"}, "--starter process");
  refused({"--keep-going", "--", "bench"}, "--keep-going only applies to --program");
  refused({"--ps-port", "70000", "--", "bench"}, "--ps-port 70000: must be a whole number from 1 to 65535");
  refused({"--threads-per-ps", "-1", "--", "bench"}, "--threads-per-ps -1");
}

TEST(LaunchServersRefuses, ServersWhereThereAreNone) {
  const Words common{"--workers", "2", "--oversubscribe"};
  const auto refused = [&](Words more, const std::string& part) {
    more.insert(more.begin(), common.begin(), common.end());
    expect_refused(more, part);
  };
  refused({"--ps", "-1", "--", "bench"}, "--ps -1: must be a whole number from 0 to 100000");
  refused({"--ps-port", "2230", "--", "bench"}, "--ps-port has no effect without --ps");
  refused({"--worker-port", "2220", "--", "bench"}, "--worker-port has no effect");
  refused({"--threads-per-ps", "1", "--", "bench"}, "--threads-per-ps has no effect without --ps");
  refused({"--", "bench", "--variable-update", "parameter_server"}, "needs parameter servers: trireme launch --ps N");
  refused({"--", "bench", "--async"}, "--async has no effect without parameter servers");
}

}  // namespace
}  // namespace trireme::testkit
