#include "trireme/cluster/host_address.hpp"

#include <gtest/gtest.h>

#include "trireme/base/error.hpp"

namespace trireme::cluster {
namespace {

using Addresses = std::vector<std::string>;

HostFacts facts() {
  HostFacts facts;
  facts.addresses = {
      {"lo", "127.0.0.1", 8}, {"eth0", "10.1.2.3", 24}, {"ib0", "192.168.7.9", 20}, {"ib0", "fd00::9", 64}};
  facts.reached_address = "10.1.2.3";
  return facts;
}

std::string choose(const HostFacts& facts, const std::string& network) {
  return choose_addresses({{.name = "host7", .facts = facts}}, network).front();
}

// Reached at the first address.
KnownHost host(const std::string& name, const std::vector<InterfaceAddress>& addresses) {
  KnownHost known{.name = name, .facts = {}};
  known.facts.addresses = addresses;
  known.facts.reached_address = addresses.front().address;
  return known;
}

std::string refusal(const std::vector<KnownHost>& hosts) {
  try {
    choose_addresses(hosts, "");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::bad_input);
    return error.what();
  }
  return "";
}

TEST(HostAddress, TasksAreFoundWhereSshWasOrInTheNetworkAskedFor) {
  EXPECT_EQ(choose(facts(), ""), "10.1.2.3");
  EXPECT_EQ(choose(facts(), "ib0"), "192.168.7.9");
  EXPECT_EQ(choose(facts(), "192.168.0.0/16"), "192.168.7.9");
  EXPECT_EQ(choose(facts(), "192.168.7.8/31"), "192.168.7.9");
  EXPECT_EQ(choose(facts(), "fd00::/8"), "fd00::9");
  EXPECT_EQ(choose(facts(), "0.0.0.0/0"), "127.0.0.1");
}

TEST(HostAddress, AHostOutsideOfTheNetworkIsNamedWithWhatItHas) {
  for (const char* network : {"eth1", "192.168.7.8/32", "10.2.0.0/16"}) {
    try {
      choose(facts(), network);
      ADD_FAILURE() << network;
    } catch (const Error& error) {
      const std::string text = error.what();
      EXPECT_NE(text.find("host7"), std::string::npos) << text;
      EXPECT_NE(text.find("eth0 10.1.2.3/24"), std::string::npos) << text;
    }
  }
  HostFacts unknown = facts();
  unknown.reached_address.clear();
  EXPECT_THROW(choose(unknown, ""), Error);
  for (const char* network : {"10.0.0.0/", "10.0.0/8", "10.0.0.0/33", "fd00::/129", "/8", "10.0.0.0/8x"}) {
    EXPECT_THROW(choose(facts(), network), Error) << network;
  }
}

TEST(HostAddress, WhereHostsAreReachedInOneNetworkTheyMeetThere) {
  EXPECT_EQ(choose_addresses({host("a", {{"eth1", "10.0.1.1", 24}, {"eth0", "10.0.0.1", 24}}),
                              host("b", {{"eth1", "10.0.1.2", 24}, {"eth0", "10.0.0.2", 24}})},
                             ""),
            (Addresses{"10.0.1.1", "10.0.1.2"}));
  EXPECT_EQ(choose_addresses({host("a", {{"eth0", "fd00::1", 64}}), host("b", {{"eth3", "fd00::2", 64}})}, ""),
            (Addresses{"fd00::1", "fd00::2"}));
  EXPECT_EQ(choose_addresses({host("a", {{"eth0", "10.128.0.2", 32}}), host("b", {{"eth0", "10.132.0.9", 32}})}, ""),
            (Addresses{"10.128.0.2", "10.132.0.9"}))
      << "such addresses do not tell their network";
}

TEST(HostAddress, OtherwiseTheyMeetInTheFirstNetworkThatAllShare) {
  const std::vector<InterfaceAddress> everywhere{
      {"lo", "127.0.0.1", 8}, {"bond0", "169.254.3.1", 16}, {"docker0", "172.17.0.1", 16}};
  KnownHost a = host("a", {{"eth0", "54.1.2.3", 24}}), b = host("b", {{"eth0", "10.0.0.2", 24}}),
            c = host("c", {{"eth0", "10.0.0.3", 24}});
  for (KnownHost* known : {&a, &b, &c}) {
    known->facts.addresses.insert(known->facts.addresses.end(), everywhere.begin(), everywhere.end());
  }
  a.facts.addresses.push_back({"eth1", "10.0.0.1", 24});
  EXPECT_EQ(choose_addresses({a, b, c}, ""), (Addresses{"10.0.0.1", "10.0.0.2", "10.0.0.3"}));
  EXPECT_EQ(choose_addresses({b, c, a}, ""), (Addresses{"10.0.0.2", "10.0.0.3", "10.0.0.1"}));
  for (KnownHost* known : {&a, &b}) known->facts.reached_address = "127.0.0.1";
  EXPECT_EQ(choose_addresses({a, b}, ""), (Addresses{"10.0.0.1", "10.0.0.2"})) << "tunnels that end at each of them";
}

TEST(HostAddress, HostsWithoutACommonNetworkAreNamedWithWhatTheyHave) {
  const std::string text = refusal({host("a", {{"eth0", "10.0.0.1", 24}, {"docker0", "172.17.0.1", 16}}),
                                    host("b", {{"eth0", "10.0.1.1", 24}, {"docker0", "172.17.0.1", 16}})});
  for (const char* part : {"give --network", "a was reached at 10.0.0.1 and has eth0 10.0.0.1/24, docker0",
                           "b was reached at 10.0.1.1 and has eth0 10.0.1.1/24"}) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  }
}

TEST(HostAddress, AnAddressThatAHostDoesNotHaveIsNamedWithWhatItHas) {
  const KnownHost known{.name = "host7", .facts = facts()};
  check_has_address(known, "192.168.7.9");
  check_has_address(known, "fd00::9");
  try {
    check_has_address(known, "192.168.7.8");
    ADD_FAILURE() << "192.168.7.8 is no address of it";
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("192.168.7.8 is not an address of host7"), std::string::npos) << text;
    EXPECT_NE(text.find("eth0 10.1.2.3/24"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace trireme::cluster
