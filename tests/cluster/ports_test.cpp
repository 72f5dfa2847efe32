#include "trireme/cluster/ports.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "trireme/base/error.hpp"

namespace trireme::cluster {
namespace {

PortRange from(int first, int count) { return {.option = "--ps-port", .usual_first = first, .count = count}; }

TEST(Ports, TheUsualOnesGiveWayToOthers) {
  PortClaims ours, theirs;
  const std::vector<int> mine = ours.claim(from(23100, 3));
  const std::vector<int> other = theirs.claim(from(23100, 3));
  ASSERT_EQ(mine.size(), 3U);
  ASSERT_EQ(other.size(), 3U);
  EXPECT_GE(mine.front(), 23100);
  EXPECT_GT(other.front(), mine.back()) << "another launch has them";
  EXPECT_GT(ours.claim(from(23100, 1)).front(), mine.back()) << "so has this one";
}

TEST(Ports, ThoseAskedForAreThoseOrNone) {
  int port = 0;
  {
    PortClaims before;
    port = before.claim(from(23200, 1)).front();
    try {
      PortClaims().claim({.option = "--ps-port", .first = port, .usual_first = 0, .count = 2});
      FAIL() << "not refused";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::bad_input);
      EXPECT_NE(std::string(error.what()).find(fmt::format("--ps-port {}: port {} is in use", port, port)),
                std::string::npos)
          << error.what();
    }
  }
  PortClaims after;
  EXPECT_EQ(after.claim({.option = "--ps-port", .first = port, .usual_first = 0, .count = 1}), std::vector<int>{port})
      << "a claim ends with its owner";
}

TEST(Ports, OneThatOthersHaveUnderIpv6AloneIsInUse) {
  const UniqueFd other(socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int yes = 1;
  sockaddr_in6 address{};
  socklen_t length = sizeof address;
  address.sin6_family = AF_INET6;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (!other.is_open() || setsockopt(other.get(), IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof yes) != 0 ||
      bind(other.get(), generic, length) != 0) {
    GTEST_SKIP() << "no IPv6 here";
  }
  ASSERT_TRUE(listen(other.get(), 1) == 0 && getsockname(other.get(), generic, &length) == 0);
  EXPECT_FALSE(PortClaims().try_claim(ntohs(address.sin6_port)));
}

TEST(Ports, ThereHasToBeRoomForAll) {
  for (const int first : {0, -1, 65535, 70000}) {
    EXPECT_THROW(PortClaims().claim({.option = "--ps-port", .first = first, .usual_first = 0, .count = 2}), Error);
  }
}

}  // namespace
}  // namespace trireme::cluster
