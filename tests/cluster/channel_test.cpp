#include "trireme/cluster/channel.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>

#include "trireme/cluster/child_process.hpp"
#include "trireme/cluster/greeting.hpp"

namespace trireme::cluster {
namespace {

using nlohmann::json;

std::array<UniqueFd, 2> socket_pair() {
  std::array<int, 2> ends{};
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

TEST(Channel, CarriesMessagesOfAnyBytesInOrder) {
  auto ends = socket_pair();
  Channel sender(std::move(ends[0])), receiver(std::move(ends[1]));
  const std::string bytes("\0\n\xff\x80", 4);
  sender.send({{"type", "first"}, {"text", bytes}});
  sender.send({{"type", "second"}});
  std::vector<json> messages;
  EXPECT_TRUE(receiver.receive(messages));
  ASSERT_EQ(messages.size(), 2U);
  EXPECT_EQ(messages[0]["text"].get<std::string>(), bytes);
  EXPECT_EQ(messages[1]["type"], "second");
}

TEST(Channel, WaitsForNobodyAndLosesNothingOfALargeMessage) {
  auto ends = socket_pair();
  Channel sender(std::move(ends[0])), receiver(std::move(ends[1]));
  const std::string text(5'000'000, 'x');
  sender.send({{"type", "large"}, {"text", text}});
  EXPECT_GT(sender.unsent_bytes(), 0U);  // more than a socket holds, and yet we are here
  std::vector<json> messages;
  while (messages.empty()) {
    ASSERT_TRUE(receiver.receive(messages));
    sender.flush();
  }
  EXPECT_EQ(messages[0]["text"].get<std::string>(), text);
}

TEST(Channel, WhatCameBeforeTheEndIsDelivered) {
  auto ends = socket_pair();
  Channel receiver(std::move(ends[1]));
  Channel(std::move(ends[0])).send({{"type", "last"}});
  std::vector<json> messages;
  EXPECT_FALSE(receiver.receive(messages));
  EXPECT_FALSE(receiver.is_garbled());
  EXPECT_EQ(messages.size(), 1U);
}

TEST(Channel, TwoPipesWillDo) {
  PipeEnds there = make_pipe(), back = make_pipe();
  Channel near(std::move(back.read), std::move(there.write)), far(std::move(there.read), std::move(back.write));
  near.send({{"type", "question"}});
  far.send({{"type", "answer"}});
  std::vector<json> messages;
  EXPECT_TRUE(far.receive(messages));
  EXPECT_TRUE(near.receive(messages));
  ASSERT_EQ(messages.size(), 2U);
  EXPECT_EQ(messages[0]["type"], "question");
  EXPECT_EQ(messages[1]["type"], "answer");
}

TEST(Channel, WhatIsNotTheProtocolEndsIt) {
  for (const std::string& garbage :
       {std::string("GET / HTTP/1.1\r\n\r\n"), to_frame({{"text", "no type"}}), to_frame({{"type", 3}}),
        to_frame(json::array({1, 2})), std::string("\x02\0\0\0\xff\xff", 6)}) {
    auto ends = socket_pair();
    Channel receiver(std::move(ends[1]));
    ASSERT_EQ(send(ends[0].get(), garbage.data(), garbage.size(), 0), static_cast<ssize_t>(garbage.size()));
    std::vector<json> messages;
    EXPECT_FALSE(receiver.receive(messages));
    EXPECT_TRUE(receiver.is_garbled());
    EXPECT_TRUE(messages.empty());
  }
}

TEST(Channel, WhatComesBeforeTheGreetingIsSkipped) {
  auto ends = socket_pair();
  Channel receiver(std::move(ends[1]));
  receiver.await_greeting();
  const auto comes = [&](const std::string& bytes) {
    EXPECT_EQ(send(ends[0].get(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
    std::vector<json> messages;
    EXPECT_TRUE(receiver.receive(messages));
    return messages.size();
  };
  const std::string greeting(kHostGreeting);
  EXPECT_EQ(comes("\nWelcome to n1!\n$ " + greeting.substr(0, 5)), 0U);
  EXPECT_EQ(comes(greeting.substr(5)), 0U);
  EXPECT_EQ(comes(to_frame({{"type", "first"}, {"text", greeting}}) + to_frame({{"type", "second"}})), 2U);
}

TEST(Channel, TooMuchBeforeTheGreetingEndsIt) {
  PipeEnds there = make_pipe(), back = make_pipe();
  Channel receiver(std::move(there.read), std::move(back.write));
  receiver.await_greeting();
  ChildProcess talker({.command = {"yes"}, .out = there.write.get()});
  std::vector<json> messages;
  while (receiver.receive(messages)) {
    pollfd polled{receiver.descriptor(), POLLIN, 0};
    ASSERT_EQ(poll(&polled, 1, 10'000), 1);
  }
  EXPECT_TRUE(receiver.is_garbled());
}

TEST(Channel, ListenersAreFoundByTheirAddress) {
  const Listener listener, other;
  EXPECT_NE(listener.address(), other.address());
  EXPECT_FALSE(listener.accept().is_open());
  Channel client(connect_to(listener.address()));
  Channel server(listener.accept());
  client.send({{"type", "hello"}});
  std::vector<json> messages;
  EXPECT_TRUE(server.receive(messages));
  EXPECT_EQ(messages.size(), 1U);
}

}  // namespace
}  // namespace trireme::cluster
