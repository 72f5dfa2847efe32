// A host goes away while a job runs: it is named first, whatever the tasks on the others say and do about it.
#include <gtest/gtest.h>

#include "tests/hosts/launch_hosts.hpp"

namespace trireme::testkit {
namespace {

using namespace std::chrono_literals;

class LaunchLostHost : public LaunchHosts, public ::testing::WithParamInterface<const char*> {
 protected:
  void pull_cable_and_expect_its_name(LaunchedJob& job) {
    cluster_.run("link n1 down");
    EXPECT_NE(job.exit_code(30s), 0);
    EXPECT_EQ(first_error(job), "trireme: error: rank 1 (n1") << job.err();
    EXPECT_TRUE(has(job.err(), "nothing was received from its host")) << job.err();
    EXPECT_FALSE(has(job.err(), "ssertion")) << job.err();
    EXPECT_TRUE(job.is_gone_within(2s));
    cluster_.run("link n1 up");
    expect_nothing_left(20);
  }
  // As far as the host.
  static std::string first_error(const LaunchedJob& job) {
    const std::string all = job.err();
    const std::size_t begin = all.find("trireme: error: ");
    return begin == std::string::npos ? "" : all.substr(begin, all.find_first_of(",)", begin) - begin);
  }
};

using LaunchLostHostSeenBy = LaunchLostHost;
INSTANTIATE_TEST_SUITE_P(WhoThen, LaunchLostHostSeenBy, ::testing::Values("exit 7", "kill -KILL $$"),
                         [](const auto& end) { return *end.param == 'e' ? "Fails" : "IsKilled"; });

// Others notice before the launcher can be sure, and end at once.
TEST_P(LaunchLostHostSeenBy, AnotherTask) {
  LaunchedJob job(script_on("n0,n1", 2,
                            std::string("echo ready; [ $TRIREME_TASK_INDEX = 0 ] || exec sleep 60; "
                                        "while timeout 2 bash -c '</dev/tcp/n1/22'; do sleep 0.1; done; ") +
                                GetParam()));
  ASSERT_TRUE(job.wait_for_output("[0] ready") && job.wait_for_output("[1] ready")) << job.err();
  pull_cable_and_expect_its_name(job);
}

using LaunchLostHostOver = LaunchLostHost;
INSTANTIATE_TEST_SUITE_P(Protocols, LaunchLostHostOver, ::testing::Values("grpc", "grpc+ucx", "mpi"),
                         [](const auto& protocol) {
                           const std::string name = protocol.param;
                           return name == "grpc" ? "Grpc" : name == "mpi" ? "Mpi" : "Ucx";
                         });

TEST_P(LaunchLostHostOver, ABenchmark) {
  LaunchedJob job(
      on_hosts("n0,n1,n2", {"--", "bench", "--model", "mnist", "--batch-size", "4", "--num-batches", "1000000",
                            "--num-warmup-batches", "0", "--autotune", "off", "--protocol", GetParam()}),
      {"OMPI_MCA_mpi_yield_when_idle=1"});
  ASSERT_TRUE(job.wait_for_output("[0] 1\timages/sec", 60s)) << job.err();
  pull_cable_and_expect_its_name(job);
}

}  // namespace
}  // namespace trireme::testkit
