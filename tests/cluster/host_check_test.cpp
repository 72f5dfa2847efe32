#include "trireme/cluster/host_check.hpp"

#include <gtest/gtest.h>

namespace trireme::cluster {
namespace {

TEST(HostCheck, ThisMachineKnowsItsCoresAddressesAndFreePorts) {
  const HostFacts here = read_host_facts({.tasks = {.workers = 2, .servers = 1}});
  EXPECT_FALSE(here.cores.empty());
  EXPECT_GE(here.core_limit, 1);
  EXPECT_EQ(here.ports.workers.size(), 2U);
  EXPECT_EQ(here.ports.servers.size(), 1U);
  EXPECT_FALSE(here.addresses.empty());
}

TEST(HostCheck, AShellThatPrintsWithoutEndIsNoHost) {
  const HostReach reach{
      .name = "ssh",
      .command = [](const std::string&, const std::vector<std::string>&) { return std::vector<std::string>{"yes"}; },
      .failure = [](int, const std::string&) { return ""; }};
  const auto answers = ask_hosts({{.host = {.name = "a", .program = "trireme"}, .ports = {}}}, reach);
  EXPECT_EQ(answers.front().problem, "its shell prints more than 64 KB at the start");
}

}  // namespace
}  // namespace trireme::cluster
