#include "trireme/cluster/host_check.hpp"

#include <gtest/gtest.h>

#include "trireme/base/error.hpp"

namespace trireme::cluster {
namespace {

HostFacts facts() {
  HostFacts facts;
  facts.addresses = {
      {"lo", "127.0.0.1", 8}, {"eth0", "10.1.2.3", 24}, {"ib0", "192.168.7.9", 20}, {"ib0", "fd00::9", 64}};
  facts.reached_address = "10.1.2.3";
  return facts;
}

TEST(HostCheck, TasksAreFoundWhereSshWasOrInTheNetworkAskedFor) {
  EXPECT_EQ(choose_address("a", facts(), ""), "10.1.2.3");
  EXPECT_EQ(choose_address("a", facts(), "ib0"), "192.168.7.9");
  EXPECT_EQ(choose_address("a", facts(), "192.168.0.0/16"), "192.168.7.9");
  EXPECT_EQ(choose_address("a", facts(), "192.168.7.8/31"), "192.168.7.9");
  EXPECT_EQ(choose_address("a", facts(), "fd00::/8"), "fd00::9");
  EXPECT_EQ(choose_address("a", facts(), "0.0.0.0/0"), "127.0.0.1");
}

TEST(HostCheck, AHostOutsideOfTheNetworkIsNamedWithWhatItHas) {
  for (const char* network : {"eth1", "192.168.7.8/32", "10.2.0.0/16"}) {
    try {
      choose_address("host7", facts(), network);
      ADD_FAILURE() << network;
    } catch (const Error& error) {
      const std::string text = error.what();
      EXPECT_NE(text.find("host7"), std::string::npos) << text;
      EXPECT_NE(text.find("eth0 10.1.2.3/24"), std::string::npos) << text;
    }
  }
  HostFacts unknown = facts();
  unknown.reached_address.clear();
  EXPECT_THROW(choose_address("a", unknown, ""), Error);
  for (const char* network : {"10.0.0.0/", "10.0.0/8", "10.0.0.0/33", "fd00::/129", "/8", "10.0.0.0/8x"}) {
    EXPECT_THROW(choose_address("a", facts(), network), Error) << network;
  }
}

TEST(HostCheck, AnAddressThatAHostDoesNotHaveIsNamedWithWhatItHas) {
  check_has_address("host7", facts(), "192.168.7.9");
  check_has_address("host7", facts(), "fd00::9");
  try {
    check_has_address("host7", facts(), "192.168.7.8");
    ADD_FAILURE() << "192.168.7.8 is no address of it";
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("192.168.7.8 is not an address of host7"), std::string::npos) << text;
    EXPECT_NE(text.find("eth0 10.1.2.3/24"), std::string::npos) << text;
  }
}

TEST(HostCheck, ThisMachineKnowsItsCoresAddressesAndFreePorts) {
  const HostFacts here = read_host_facts({.tasks = {.workers = 2, .servers = 1}});
  EXPECT_FALSE(here.cores.empty());
  EXPECT_GE(here.core_limit, 1);
  EXPECT_EQ(here.ports.workers.size(), 2U);
  EXPECT_EQ(here.ports.servers.size(), 1U);
  EXPECT_FALSE(here.addresses.empty());
}

}  // namespace
}  // namespace trireme::cluster
