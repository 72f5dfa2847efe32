#include "trireme/cluster/host_check.hpp"

#include <gtest/gtest.h>

#include "trireme/base/error.hpp"

namespace trireme::cluster {
namespace {

TEST(HostCheck, ThisMachineKnowsItsCoresAndAddresses) {
  const HostFacts here = read_host_facts({.tasks = {.workers = 2, .servers = 1}});
  EXPECT_FALSE(here.cores.empty());
  EXPECT_GE(here.core_limit, 1);
  EXPECT_FALSE(here.addresses.empty());
}

// Or launches at the same time would refuse each other what only one of them has asked for.
TEST(HostCheck, PortsThatNobodyAsksForAreNotClaimed) {
  PortClaims other;
  const int port = other.claim({.option = "", .usual_first = 23300, .count = 1}).front();
  EXPECT_THROW(read_host_facts({.tasks = {.workers = 1, .servers = 0}, .first_worker = port}), Error);
  EXPECT_NO_THROW(read_host_facts({.tasks = {.workers = 1, .servers = 0}}));
}

TEST(HostCheck, AShellThatPrintsWithoutEndIsNoHost) {
  const HostReach reach{
      .name = "ssh",
      .command = [](const std::string&, const std::vector<std::string>&) { return std::vector<std::string>{"yes"}; },
      .failure = [](int, const std::string&) { return ""; }};
  const auto answers = ask_hosts({{.name = "a", .program = "trireme"}}, reach);
  EXPECT_EQ(answers.front().problem, "its shell prints more than 64 KB at the start");
}

}  // namespace
}  // namespace trireme::cluster
