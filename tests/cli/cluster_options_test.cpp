// The options by which a task that was started by hand is told where it is, as a user meets them.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>

#include "tests/cli/run_command.hpp"
#include "tests/support/temporary_folder.hpp"

namespace trireme::testkit {
namespace {

using Words = std::vector<std::string>;

void expect_bench_refused(const Words& options, const std::string& part, const Words& environment = {}) {
  Words words{"bench"};
  words.insert(words.end(), options.begin(), options.end());
  CommandOptions how;
  how.environment = environment;
  const CommandResult result = run_trireme(words, how);
  EXPECT_EQ(result.exit_code, 2) << result.err;
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  EXPECT_NE(result.err.find(part), std::string::npos) << "expected '" << part << "' in: " << result.err;
}

TEST(ClusterOptions, APlaceIsGivenInFull) {
  const std::string workers = "--worker-hosts=localhost:2220,localhost:2221";
  expect_bench_refused({workers},
                       "which task of the cluster is this process? Give --job-name (worker or ps) and --task-index");
  expect_bench_refused({workers, "--job-name", "worker"},
                       "--job-name and --task-index go together; --task-index is missing");
  expect_bench_refused({workers, "--task-index", "0"}, "--job-name is missing");
  expect_bench_refused({"--job-name", "worker", "--task-index", "0"},
                       "--job-name has no effect without --worker-hosts");
  expect_bench_refused({"--ps-hosts", "localhost:2230", "--job-name", "ps", "--task-index", "0"},
                       "--worker-hosts: a cluster needs at least one worker");
  expect_bench_refused({workers, "--job-name", "worker", "--task-index", "4"},
                       "--task-index 4: there are workers 0 to 1");
  expect_bench_refused({workers, "--job-name", "chief", "--task-index", "0"}, "there is no job 'chief'");
  expect_bench_refused({workers, "--cluster", "x.json"}, "--cluster and --worker-hosts both name the tasks");
  expect_bench_refused({"--cluster", "/no/such.json"}, "--cluster /no/such.json: cannot read this file");
}

TEST(ClusterOptions, ATaskRunsOnTheMachineOfItsAddress) {
  expect_bench_refused({"--worker-hosts", "192.0.2.1:2220", "--job-name", "worker", "--task-index", "0"},
                       "worker 0 is to listen on 192.0.2.1:2220, but this machine has ");
}

TEST(ClusterOptions, TheSecretIsRequiredAndMeantToBeOne) {
  const TemporaryFolder folder;
  const Words place{"--worker-hosts", "localhost:2220", "--job-name", "worker", "--task-index", "0"};
  const auto with = [&](const std::string& option, const std::string& value) {
    Words words = place;
    words.insert(words.end(), {option, value});
    return words;
  };
  expect_bench_refused(place, "make one with (umask 077; head -c 32 /dev/urandom | base64 > job.secret)");
  expect_bench_refused(place, "the variable TRIREME_JOB_SECRET: a secret of 5 characters can be guessed",
                       {"TRIREME_JOB_SECRET=short"});
  std::ofstream(folder / "s") << "0123456789abcdef";
  chmod((folder / "s").c_str(), 0644);
  expect_bench_refused(with("--secret-file", folder / "s"), "(mode 0644); run chmod 600");
  expect_bench_refused(with("--secret-file", folder / "s"), "both give the secret",
                       {"TRIREME_JOB_SECRET=0123456789abcdef"});
  expect_bench_refused(with("--tls-cert", folder / "s"),
                       "--tls-cert, --tls-key and --tls-ca go together; --tls-key is");
}

TEST(ClusterOptions, TheProtocolSuitsTheCluster) {
  const Words place{"--worker-hosts", "localhost:2220,localhost:2221", "--job-name", "worker", "--task-index", "0"};
  const auto with = [&](const std::string& protocol) {
    Words words = place;
    words.insert(words.end(), {"--protocol", protocol});
    return words;
  };
  expect_bench_refused({"--protocol", "grpc"}, "there are no other tasks; start this command with trireme launch");
  expect_bench_refused({"--protocol", "grpc+verbs"}, "use grpc+ucx for RDMA");
  expect_bench_refused(with("mpi"), "--protocol mpi uses mpirun's ranks, not addresses");
  expect_bench_refused(with("grpc+mpi"), "one mpirun must start all 2 tasks");
  const Words wrong_rank{"OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=2"};
  expect_bench_refused(with("grpc+mpi"), "this process as rank 1 of 2, but worker 0 of this cluster is rank 0 of 2",
                       wrong_rank);
  expect_bench_refused({"--worker-hosts", "localhost:2220"},
                       "Open MPI started 2 processes, but the cluster has 1 tasks", wrong_rank);
  expect_bench_refused({"--tls-ca", "x"}, "--tls-cert is missing");
  expect_bench_refused({"--join-timeout", "0"}, "--join-timeout 0");
  expect_bench_refused({"--server-protocol", "grpc"}, "--server-protocol: use --protocol");
}

TEST(ClusterOptions, ALaunchHasTheLastWord) {
  expect_bench_refused({"--worker-hosts", "localhost:2220"},
                       "--worker-hosts: `trireme launch` tells its tasks where they are", {"TRIREME_LAUNCH=x"});
}

}  // namespace
}  // namespace trireme::testkit
