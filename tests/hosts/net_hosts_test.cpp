// `trireme net` between hosts whose links have a known rate, and what a benchmark says of the same links. Limits above
// are those of the links, which no transfer can break; below, the best of several samples counts, because the machine
// may have other things to do.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "tests/distributed/bench_record.hpp"
#include "tests/distributed/launched_job.hpp"
#include "tests/hosts/test_cluster.hpp"

namespace trireme::testkit {
namespace {

using namespace std::chrono_literals;
using Words = std::vector<std::string>;

constexpr double kLinkRate = 0.125e9;  // bytes per second of 1 Gbit/s
constexpr double kAtOnce = 1.04;       // what a link lets through at once counts in short transfers

class NetHosts : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!cluster_.reason_to_skip().empty()) GTEST_SKIP() << cluster_.reason_to_skip();
    ASSERT_EQ(cluster_.run("shape 1gbit").code, 0);
  }

  // The record of a command that two hosts have run.
  nlohmann::json record_of(Words command) const {
    const std::string path = cluster_.folder() + "/record.json";
    Words words{"--ssh-config", cluster_.ssh_config(), "--hosts", "n0,n1", "--workers", "2", "--oversubscribe", "--"};
    command.insert(command.end(), {"--network-file", network_file(), "--record", path});
    words.insert(words.end(), command.begin(), command.end());
    LaunchedJob job(words);
    EXPECT_EQ(job.exit_code(90s), 0) << job.err() << job.out();
    return read_record(path);
  }
  std::string network_file() const { return cluster_.folder() + "/network.json"; }
  // Figures of a busy host are not used, and other tests run on this machine.
  void say_that_hosts_were_idle() const {
    nlohmann::json kept = read_record(network_file());
    for (nlohmann::json& transport : kept.at("transports")) transport.at("other_host").at("load") = 0;
    std::ofstream(network_file()) << kept;
  }

  TestCluster cluster_{2};
};

// Of large messages one way: as close to the rate as it came.
double best_rate(const nlohmann::json& pair) {
  double best = 0;
  for (const nlohmann::json& message : pair.at("messages")) {
    const double bytes = message.at("bytes");
    if (message.at("mode") != "one-way" || bytes < (2 << 20)) continue;
    best = std::max(best, bytes / message.at("seconds").at("minimum").get<double>());
  }
  return best;
}

TEST_F(NetHosts, ALinkOfOneGigabitShowsInNetAndInABenchmarkAlike) {
  const nlohmann::json net = record_of(
      {"net", "--transports", "tcp,grpc", "--max-bytes", "8Mi", "--seconds-per-size", "0.02", "--algorithms", "ring"});
  ASSERT_EQ(net.at("pairs").size(), 2U);
  for (const nlohmann::json& pair : net.at("pairs")) {
    EXPECT_FALSE(pair.at("same_host"));
    EXPECT_GE(best_rate(pair), 0.11e9) << pair.at("transport");
    EXPECT_LE(best_rate(pair), kLinkRate) << pair.at("transport");
  }
  for (const nlohmann::json& result : net.at("all_reduce")) {
    if (result.at("bytes") < (4 << 20)) continue;
    EXPECT_LE(result.at("bus_bytes_per_second"), kAtOnce * kLinkRate);
  }

  say_that_hosts_were_idle();
  // Without overlap all communication is exposed.
  const nlohmann::json bench = record_of({"bench", "--model", "lenet", "--batch-size", "1", "--num-batches", "5",
                                          "--num-warmup-batches", "1", "--autotune", "off", "--overlap", "off"});
  const nlohmann::json& results = bench.at("results");
  const double link = results.at("link_bytes_per_second"), bytes = results.at("communication_bytes");
  EXPECT_EQ(link, net.at("pairs").at(1).at("fit").at("bytes_per_second")) << "what gRPC has reached";
  EXPECT_LE(results.at("bus_bytes_per_second"), kAtOnce * kLinkRate);
  double exposed = 0;
  for (const nlohmann::json& rank : results.at("breakdown")) {
    exposed = std::max(exposed, rank.at("exposed_communication").get<double>());
  }
  EXPECT_GE(exposed, 0.9 * bytes / (kAtOnce * kLinkRate));
}

}  // namespace
}  // namespace trireme::testkit
