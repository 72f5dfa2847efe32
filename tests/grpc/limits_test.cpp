// What strangers can take from a task before they have proved anything: little memory, few connections.
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <thread>

#include "flood.hpp"
#include "processes.hpp"
#include "raw_socket.hpp"
#include "tests/comm/suite_check.hpp"
#include "trireme/comm/collectives.hpp"

namespace trireme::comm::testkit {
namespace {

using namespace std::chrono_literals;

// In MB: the most that this process has ever had.
int peak_memory() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::stoi(line.substr(6)) / 1024;
  }
  return 0;
}

// Lets other processes wait until it is closed.
class Curtain {
 public:
  Curtain() {
    if (pipe(ends_) != 0) throw std::runtime_error("no pipe");
  }
  ~Curtain() {
    fall();
    close(ends_[0]);
  }
  void fall() {
    if (ends_[1] >= 0) close(std::exchange(ends_[1], -1));
  }
  void wait() {  // in another process
    fall();
    char byte = 0;
    while (read(ends_[0], &byte, 1) > 0) continue;
  }

 private:
  int ends_[2] = {-1, -1};
};

UniqueFd connect_soon(const std::string& address) {
  for (int i = 0; i < 1000; ++i) {
    UniqueFd connection = connect_to(address);
    if (connection.is_open()) return connection;
    std::this_thread::sleep_for(10ms);
  }
  return UniqueFd();
}

bool is_closed(const UniqueFd& connection) {
  pollfd waited{connection.get(), POLLIN, 0};
  char byte = 0;
  while (poll(&waited, 1, 0) > 0) {
    if (recv(connection.get(), &byte, 1, 0) <= 0) return true;
  }
  return false;
}

// 24 connections with 16 calls each, and 4 MB in every one: before there were limits, a task grew to 1.79 GB.
TEST(GrpcLimits, UnfinishedMessagesOfStrangersTakeLittleMemory) {
  constexpr int kConnections = 24, kCalls = 16, kMostMegabytes = 64;
  const auto tasks = local_tasks(1);
  Curtain curtain;
  Processes processes;
  processes.start([&]() -> std::string {
    const auto world = rpc::join(options_of(tasks, 0));
    const int before = peak_memory();
    curtain.wait();
    return std::to_string(peak_memory() - before);
  });
  ASSERT_TRUE(connect_soon(tasks[0].address).is_open());
  std::vector<std::unique_ptr<Flood>> floods;
  std::vector<std::thread> threads;
  for (int i = 0; i < kConnections; ++i) {
    const char* const method = i % 2 == 0 ? "/trireme/data" : "/trireme/membership";
    Flood& flood = *floods.emplace_back(std::make_unique<Flood>(tasks[0].address, method));
    threads.emplace_back([&] { flood.run(kCalls, 4 << 20); });
  }
  for (std::thread& thread : threads) thread.join();
  std::size_t sent = 0;
  for (const auto& flood : floods) sent += flood->sent_bytes();
  EXPECT_GT(sent, std::size_t{1} << 20) << "this is no flood";
  curtain.fall();
  const Outcome outcome = processes.wait(0);
  ASSERT_TRUE(outcome.is_success) << outcome.answer;
  EXPECT_LT(std::stoi(outcome.answer), kMostMegabytes) << "MB, for " << sent << " bytes sent";
}

// More connections than a task has for strangers: those that came first are closed, and tasks can still come.
TEST(GrpcLimits, StrangersWhoSayNothingKeepNobodyOut) {
  constexpr int kConnections = 300;
  const auto tasks = local_tasks(2);
  Processes processes;
  for (const int self : {0, 1}) {
    processes.start([&, self]() -> std::string {
      if (self == 1) std::this_thread::sleep_for(2s);
      const auto world = rpc::join(options_of(tasks, self));
      barrier(world->communicator());
      world->leave();
      return "met";
    });
  }
  std::vector<UniqueFd> connections;
  for (int i = 0; i < kConnections; ++i) connections.push_back(connect_soon(tasks[0].address));
  int closed = 0;
  for (int tries = 0; tries < 500 && closed < 200; ++tries) {
    closed = 0;
    for (const UniqueFd& connection : connections) closed += is_closed(connection) ? 1 : 0;
    std::this_thread::sleep_for(10ms);
  }
  EXPECT_GE(closed, 200);
  EXPECT_TRUE(is_closed(connections.front()));
  for (const std::size_t self : {0, 1}) EXPECT_EQ(processes.wait(self).answer, "met");
}

}  // namespace
}  // namespace trireme::comm::testkit
