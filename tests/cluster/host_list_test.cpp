#include "trireme/cluster/host_list.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/temporary_folder.hpp"
#include "trireme/base/error.hpp"

namespace trireme::cluster {
namespace {

std::string refusal(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::bad_input);
    return error.what();
  }
  return "";
}

// "a:2+1 b:1+0": workers and servers of each host.
std::string spread(const std::string& hosts, int workers, int servers) {
  std::string text;
  for (const HostTasks& host : spread_tasks(parse_hosts(hosts, "--hosts"), {.workers = workers, .servers = servers})) {
    text += fmt::format("{}{}:{}+{}", text.empty() ? "" : " ", host.host, host.size.workers, host.size.servers);
  }
  return text;
}

TEST(HostList, WorkersFollowTheNumbersOrAreDividedEvenly) {
  EXPECT_EQ(spread("a:2,b:2", 4, 0), "a:2+0 b:2+0");
  EXPECT_EQ(spread("a:2,b:2", 3, 0), "a:2+0 b:1+0");
  EXPECT_EQ(spread("a:2,b", 3, 0), "a:2+0 b:1+0");
  EXPECT_EQ(spread("a,b,c", 4, 0), "a:2+0 b:1+0 c:1+0");
  EXPECT_EQ(spread("a,b,c", 2, 0), "a:1+0 b:1+0") << "a host without tasks is left out";
}

TEST(HostList, WithoutANumberOfWorkersTheListDecides) {
  EXPECT_EQ(usual_workers(parse_hosts("a:2,b:3", "--hosts")), 5);
  EXPECT_EQ(usual_workers(parse_hosts("a,b,c", "--hosts")), 3);
  EXPECT_EQ(usual_workers(parse_hosts("a:2,b", "--hosts")), 3);
}

TEST(HostList, ServersGoInTurnToHostsWithWorkers) {
  EXPECT_EQ(spread("a,b,c", 3, 2), "a:1+1 b:1+1 c:1+0");
  EXPECT_EQ(spread("a:1,b:1", 2, 3), "a:1+2 b:1+1");
  EXPECT_EQ(spread("a:2,b:2", 2, 2), "a:2+2");
}

TEST(HostList, TooFewHostsAreRefusedWithTheNumbers) {
  const std::string text = refusal([] { spread("a:2,b:1", 4, 0); });
  EXPECT_NE(text.find("4 workers are more than the 3"), std::string::npos) << text;
  EXPECT_NE(refusal([] { spread("a", 0, 0); }), "");
  EXPECT_NE(refusal([] { spread("a", 1, -1); }), "");
}

TEST(HostList, WhatIsNoHostIsNamed) {
  for (const char* hosts : {"", "a,,b", "a:0", "a:x", "a:2x", ":2", "-oProxyCommand=x", "a b", "a,b,a"}) {
    EXPECT_NE(refusal([&] { parse_hosts(hosts, "--hosts"); }).find("--hosts"), std::string::npos) << hosts;
  }
}

TEST(HostList, AddressesOfIpv6MayStandInBrackets) {
  const auto hosts = parse_hosts("fd00::7,[fd00::8],[fd00::9]:2,fe80::1%eth0,10.0.0.1:3", "--hosts");
  ASSERT_EQ(hosts.size(), 5U);
  EXPECT_EQ(hosts[0].name, "fd00::7");
  EXPECT_FALSE(hosts[0].workers);
  EXPECT_EQ(hosts[1].name, "fd00::8");
  EXPECT_FALSE(hosts[1].workers);
  EXPECT_EQ(hosts[2].name, "fd00::9");
  EXPECT_EQ(hosts[2].workers, 2);
  EXPECT_EQ(hosts[3].name, "fe80::1%eth0");
  EXPECT_EQ(hosts[4].workers, 3);
  for (const char* bad : {"[fd00::7", "[a]:2", "[fd00::7]2", "[fd00::7]:", "a:2:3", "[]", "fd00::7]:2", "fe80::1%'"}) {
    EXPECT_NE(refusal([&] { parse_hosts(bad, "--hosts"); }).find("--hosts"), std::string::npos) << bad;
  }
  EXPECT_NE(refusal([] { parse_hosts("fd00::7,[fd00::7]", "--hosts"); }).find("as in [fd00::7]:2"), std::string::npos);
}

TEST(HostList, AFileHasALineForEachHost) {
  const testkit::TemporaryFolder folder;
  const std::string path = folder / "hosts";
  std::ofstream(path) << "# my hosts\n  a\n\nb:3 # the large one\nc slots=2\r\n";
  const auto hosts = read_host_file(path);
  ASSERT_EQ(hosts.size(), 3U);
  EXPECT_EQ(hosts[0].name, "a");
  EXPECT_FALSE(hosts[0].workers);
  EXPECT_EQ(hosts[1].workers, 3);
  EXPECT_EQ(hosts[2].workers, 2);
  std::ofstream(path) << "a\nb more words\n";
  const std::string text = refusal([&] { read_host_file(path); });
  EXPECT_NE(text.find("line 2"), std::string::npos) << text;
  EXPECT_NE(refusal([&] { read_host_file(folder / "none"); }).find("cannot be read"), std::string::npos);
}

class AddressFiles : public ::testing::Test {
 protected:
  std::vector<HostSlots> read(const std::string& public_ones, const std::string& private_ones) const {
    std::ofstream(folder_ / "public") << public_ones;
    std::ofstream(folder_ / "private") << private_ones;
    return read_address_files(folder_ / "public", folder_ / "private");
  }
  std::string refusal(const std::string& public_ones, const std::string& private_ones) const {
    return cluster::refusal([&] { read(public_ones, private_ones); });
  }

  testkit::TemporaryFolder folder_;
};

TEST_F(AddressFiles, LineByLineTheSameHost) {
  const auto hosts =
      read("54.1.2.3\nec2-54-1-2-4.compute.amazonaws.com\r\n2001:db8::7", "10.0.0.1\n 10.0.0.2 \nFD00::0:7\n");
  ASSERT_EQ(hosts.size(), 3U);
  EXPECT_EQ(hosts[0].name, "54.1.2.3");
  EXPECT_EQ(hosts[0].address, "10.0.0.1");
  EXPECT_EQ(hosts[1].name, "ec2-54-1-2-4.compute.amazonaws.com");
  EXPECT_EQ(hosts[1].address, "10.0.0.2");
  EXPECT_EQ(hosts[2].address, "fd00::7") << "as the system writes it";
  EXPECT_EQ(usual_workers(hosts), 3);
  const auto tasks = spread_tasks(hosts, {.workers = 3, .servers = 1});
  EXPECT_EQ(tasks[1].address, "10.0.0.2");
}

TEST_F(AddressFiles, DifferentLengthsAreRefusedWithBothNumbers) {
  const std::string text = refusal("a\nb\nc\n", "10.0.0.1\n10.0.0.2\n");
  EXPECT_NE(text.find("has 3 addresses"), std::string::npos) << text;
  EXPECT_NE(text.find("has 2;"), std::string::npos) << text;
}

TEST_F(AddressFiles, BadLinesAreNamed) {
  const std::string good = "10.0.0.1\n10.0.0.2\n10.0.0.3\n";
  for (const std::string bad :
       {"1.2.3.4\n\n1.2.3.5\n", "1.2.3.4\n1.2.3.4\n", "1.2.3.4\n-oProxyCommand=x\n", "1.2.3.4\n1.2.3.5 # mine\n"}) {
    const std::string text = refusal(bad, good);
    EXPECT_TRUE(text.find("--public-ips") == 0 && text.find("public, line 2: ") != std::string::npos) << text;
  }
  for (const std::string bad : {"10.0.0.1\n\n10.0.0.2\n", "10.0.0.1\n10.0.0.1\n", "10.0.0.1\nip-10-0-0-2\n",
                                "10.0.0.1\n10.0.0.256\n", "10.0.0.1\n10.0.0.2/24\n"}) {
    const std::string text = refusal("a\nb\nc\n", bad);
    EXPECT_TRUE(text.find("--private-ips") == 0 && text.find("private, line 2: ") != std::string::npos) << text;
  }
  EXPECT_NE(refusal("", good).find("contains no addresses"), std::string::npos);
  EXPECT_THROW(read_address_files(folder_ / "none", folder_ / "private"), Error);
}

}  // namespace
}  // namespace trireme::cluster
