// Launches at the same time on the same hosts: none takes from another what it has been given.
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <sstream>

#include "tests/hosts/launch_hosts.hpp"

namespace trireme::testkit {
namespace {

using namespace std::chrono_literals;
using Jobs = std::vector<std::unique_ptr<LaunchedJob>>;

class LaunchTogether : public LaunchHosts {
 protected:
  static Jobs launch(int count, const Words& arguments, const Words& environment = {}) {
    Jobs jobs;
    for (int i = 0; i < count; ++i) jobs.push_back(std::make_unique<LaunchedJob>(arguments, environment));
    return jobs;
  }
};

TEST_F(LaunchTogether, EachHasPortsOfItsOwn) {
  // A job that ends gives its ports back, so each one stays until all four have theirs.
  const TemporaryFolder arrivals;
  Words arguments = script_on(
      "n0:2,n1:1,n2:1", 4,
      fmt::format("cd {} || exit 1; "
                  "[ $TRIREME_TASK_ROLE$TRIREME_TASK_INDEX = worker0 ] && echo meet $TRIREME_CLUSTER && mktemp XXXXXX; "
                  "while [ $(ls | wc -l) -lt 4 ]; do sleep 0.1; done",
                  arrivals.path().string()));
  arguments.insert(arguments.begin(), {"--ps", "2"});
  std::set<std::string> addresses;
  std::size_t count = 0;
  for (const auto& job : launch(4, arguments)) {
    EXPECT_EQ(job->exit_code(60s), 0) << job->err();
    std::istringstream words(job->out());
    for (std::string text; std::getline(words, text, '"');) {
      if (text.find(":2") == std::string::npos) continue;
      ++count;
      addresses.insert(text);
    }
  }
  EXPECT_EQ(count, 4U * 6) << "each job names its six addresses";
  EXPECT_EQ(addresses.size(), count) << "an address was given twice";
  expect_nothing_left();
}

TEST_F(LaunchTogether, BenchmarksTrainOverGrpc) {
  const Words bench = on_hosts("n0,n1", {"--", "bench", "--model", "mnist", "--batch-size", "4", "--num-batches", "3",
                                         "--num-warmup-batches", "1", "--autotune", "off"});
  for (const auto& job : launch(4, bench)) EXPECT_EQ(job->exit_code(90s), 0) << job->err();
  expect_nothing_left();
}

TEST_F(LaunchTogether, BenchmarksTrainOverMpi) {
  const Words bench = on_hosts("n0,n1", {"--", "bench", "--model", "mnist", "--batch-size", "4", "--num-batches", "3",
                                         "--num-warmup-batches", "1", "--autotune", "off", "--protocol", "mpi"});
  for (const auto& job : launch(3, bench, {"OMPI_MCA_mpi_yield_when_idle=1"})) {
    EXPECT_EQ(job->exit_code(90s), 0) << job->err();
  }
  expect_nothing_left();
}

// Of several that ask for the same ports one gets them; MPI's daemons leave nothing of the others.
TEST_F(LaunchTogether, ThoseThatAskForTheSamePortsAreRefusedAndLeaveNothing) {
  Words arguments = script_on("n0,n1", 2, "sleep 3");
  arguments.insert(arguments.begin(), {"--starter", "mpi", "--worker-port", "2300"});
  for (int round = 0; round < 3; ++round) {
    for (const auto& job : launch(3, arguments)) {
      if (job->exit_code(60s) == 0) continue;
      EXPECT_TRUE(has(job->err(), "--worker-port 2300: port 2300 is in use")) << job->err();
    }
  }
  expect_nothing_left();
}

}  // namespace
}  // namespace trireme::testkit
