// `trireme launch --public-ips --private-ips`: hosts that ssh reaches at one address and that talk at another.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/hosts/launch_hosts.hpp"

namespace trireme::testkit {
namespace {

class LaunchAddresses : public LaunchHosts {
 protected:
  static std::string private_address(int node) { return fmt::format("10.222.0.{}", 10 + node); }

  void SetUp() override {
    LaunchHosts::SetUp();
    if (IsSkipped()) return;
    std::ofstream file(cluster_.folder() + "/public");
    for (int i = 0; i < kNodes; ++i) {
      const std::string node = fmt::format("n{}", i);
      ASSERT_EQ(cluster_.on(node, fmt::format("ip addr add {}/24 dev eth0", private_address(i))).code, 0);
      const CommandOutcome known = run_shell(fmt::format("ssh -F {} -G {}", cluster_.ssh_config(), node));
      const std::size_t begin = known.output.find("hostname ") + 9;
      file << known.output.substr(begin, known.output.find('\n', begin) - begin) << "\n";
    }
  }

  Words on_addresses(const std::string& private_addresses, const Words& rest) const {
    std::ofstream(cluster_.folder() + "/private") << private_addresses;
    Words words{"--ssh-config",  cluster_.ssh_config(),          "--public-ips",   cluster_.folder() + "/public",
                "--private-ips", cluster_.folder() + "/private", "--oversubscribe"};
    words.insert(words.end(), rest.begin(), rest.end());
    return words;
  }
};

TEST_F(LaunchAddresses, TasksTalkAtThePrivateOnes) {
  LaunchedJob job(on_addresses("10.222.0.10\n10.222.0.11\n10.222.0.12\n",
                               {"--ps", "1", "--", "bench", "--model", "lenet", "--batch-size", "4", "--num-batches",
                                "3", "--num-warmup-batches", "1", "--variable-update", "parameter_server"}));
  EXPECT_EQ(job.exit_code(std::chrono::seconds(60)), 0) << job.err();
  EXPECT_TRUE(has(job.out(), "3: 1 on n0, 1 on n1, 1 on n2")) << "one worker on each: " << job.out();
  EXPECT_TRUE(has(job.err(), "serves 3 workers at 10.222.0.10:2230")) << job.err();
  expect_nothing_left();
}

TEST_F(LaunchAddresses, AnAddressThatIsNotTheHostsIsNamed) {
  LaunchedJob job(
      on_addresses("10.222.0.10\n10.222.0.12\n10.222.0.11\n", {"--program", "/bin/sh", "--", "-c", "echo started"}));
  EXPECT_EQ(job.exit_code(), 2);
  EXPECT_TRUE(has(job.err(), "10.222.0.12 is not an address of ")) << job.err();
  EXPECT_TRUE(has(job.err(), "eth0 10.222.0.11/24")) << job.err();
  EXPECT_FALSE(has(job.out(), "started"));
}

TEST_F(LaunchAddresses, FilesThatDoNotPairAreRefused) {
  LaunchedJob job(on_addresses("10.222.0.10\n10.222.0.11\n", {"--program", "/bin/sh", "--", "-c", "echo started"}));
  EXPECT_EQ(job.exit_code(), 2);
  EXPECT_TRUE(has(job.err(), "has 3 addresses") && has(job.err(), "has 2;")) << job.err();
}

}  // namespace
}  // namespace trireme::testkit
