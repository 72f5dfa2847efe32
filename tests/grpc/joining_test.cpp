// How tasks meet over gRPC, and what they hear when they cannot.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <filesystem>
#include <set>
#include <thread>

#include "processes.hpp"
#include "tests/comm/suite_check.hpp"
#include "tests/support/temporary_folder.hpp"
#include "trireme/comm/collectives.hpp"

namespace trireme::comm::testkit {
namespace {

using namespace std::chrono_literals;

void expect_in(const std::string& part, const std::string& text) {
  EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is not in '" << text << "'";
}

std::string meet(const rpc::RpcOptions& options) {
  const auto world = rpc::join(options);
  barrier(world->communicator());
  world->leave();
  return "met";
}

TEST(GrpcJoining, TasksMayComeInAnyOrder) {
  const auto tasks = local_tasks(3);
  for (const int late : {0, 2}) {
    Processes processes;
    for (int self = 0; self < 3; ++self) {
      processes.start([&, self] {
        if (self == late) std::this_thread::sleep_for(400ms);
        return meet(options_of(tasks, self));
      });
    }
    for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(processes.wait(i).answer, "met");
  }
}

// Of this process, over TCP.
int count_connections() {
  std::set<std::pair<int, int>> ports;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    sockaddr_in here{}, there{};
    socklen_t here_length = sizeof here, there_length = sizeof there;
    const int descriptor = std::stoi(entry.path().filename().string());
    if (getpeername(descriptor, reinterpret_cast<sockaddr*>(&there), &there_length) != 0) continue;
    if (getsockname(descriptor, reinterpret_cast<sockaddr*>(&here), &here_length) != 0) continue;
    if (here.sin_family == AF_INET) ports.emplace(here.sin_port, there.sin_port);
  }
  return static_cast<int>(ports.size());
}

// All of them are connected with worker 0, and otherwise with those whom they have something to send.
TEST(GrpcJoining, ManyTasksMeetWithFewConnections) {
  constexpr int kTasks = 48;
  const auto tasks = local_tasks(kTasks);
  Processes processes;
  for (int self = 0; self < kTasks; ++self) {
    processes.start([&, self] {
      auto options = options_of(tasks, self);
      options.join_timeout = 100s;
      const auto world = rpc::join(options);
      Communicator& communicator = world->communicator();
      std::vector<float> values(10, 1.0f);
      const int next = (self + 1) % kTasks, previous = (self + kTasks - 1) % kTasks;
      const Transfer receive = communicator.start_receive(std::as_writable_bytes(std::span(values)), previous, 1);
      const std::vector<float> sent(10, 2.0f);
      communicator.wait(communicator.start_send(std::as_bytes(std::span(sent)), next, 1));
      communicator.wait(receive);
      expect(values == sent, "what is sent arrives");
      expect(count_connections() <= (self == 0 ? kTasks - 1 : 1) + 2, "one with worker 0, one with each neighbour");
      world->leave();
      return "met";
    });
  }
  for (int self = 0; self < kTasks; ++self) {
    EXPECT_EQ(processes.wait(self, 100s).answer, "met");
  }
}

TEST(GrpcJoining, WhoDoesNotComeIsNamed) {
  const auto tasks = local_tasks(3);
  Processes processes;
  for (int self = 0; self < 2; ++self) {
    processes.start([&, self] {
      auto options = options_of(tasks, self);
      options.join_timeout = self == 0 ? 2s : 20s;
      return meet(options);
    });
  }
  const Outcome first = processes.wait(0), second = processes.wait(1);
  EXPECT_FALSE(first.is_success);
  expect_in("worker 2 (" + tasks[2].address + ") did not join within 2", first.answer);
  expect_in("here are: worker 0, worker 1", first.answer);
  EXPECT_FALSE(second.is_success);
  expect_in("lost worker 0 while waiting for worker 2 (" + tasks[2].address + ")", second.answer);
}

// Worker 0 goes on waiting for the right one: a stranger must not be able to end a job.
TEST(GrpcJoining, AnotherSecretIsRefusedAtOnce) {
  const auto tasks = local_tasks(2);
  Processes processes;
  for (int self = 0; self < 2; ++self) {
    processes.start([&, self] {
      auto options = options_of(tasks, self);
      options.secret += std::to_string(self);
      if (self == 0) options.join_timeout = 3s;
      return meet(options);
    });
  }
  expect_in("worker 0 (" + tasks[0].address + ") refuses the secret of worker 1", processes.wait(1, 20s).answer);
  const std::string answer = processes.wait(0, 20s).answer;
  expect_in("worker 1 (" + tasks[1].address + ") did not join within 3", answer);
  expect_in("1 call that did not prove that it knows the job's secret was refused", answer);
}

TEST(GrpcJoining, AnotherListOfTasksIsRefused) {
  const auto tasks = local_tasks(2);
  Processes processes;
  for (int self = 0; self < 2; ++self) {
    processes.start([&, self] {
      auto options = options_of(tasks, self);
      if (self == 1) options.tasks[0].name = "ps 0";
      return meet(options);
    });
  }
  for (const std::size_t self : {0, 1}) {
    expect_in("task 0 is 'worker 0 " + tasks[0].address + "' here and 'ps 0 " + tasks[0].address + "' there",
              processes.wait(self, 20s).answer);
  }
}

TEST(GrpcJoining, APortInUseIsNoticed) {
  const auto tasks = local_tasks(2);
  Processes processes;
  processes.start([&] { return meet(options_of(tasks, 0)); });
  processes.start([&] {
    std::this_thread::sleep_for(500ms);
    return meet(options_of(tasks, 0));
  });
  const Outcome second = processes.wait(1, 20s);
  EXPECT_FALSE(second.is_success);
  expect_in("worker 0: " + tasks[0].address + " is in use; another process, or a second task with this index",
            second.answer);
}

TEST(GrpcJoining, WrongOptionsAreRefused) {
  Processes processes;
  processes.start([] {
    const auto tasks = local_tasks(1);
    const auto error_with = [&](const std::function<void(rpc::RpcOptions&)>& change) {
      auto options = options_of(tasks, 0);
      change(options);
      return error_of([&] { rpc::join(options); });
    };
    const trireme::testkit::TemporaryFolder folder;
    expect_contains(error_with([](auto& options) { options.tasks[0].address = "192.0.2.1:2230"; }),
                    "192.0.2.1:2230 is not an address of this host");
    expect_contains(error_with([](auto& options) { options.tasks[0].address = "nonsense"; }), "HOST:PORT");
    expect_contains(error_with([](auto& options) {
                      options.tasks.push_back({"ps 0", "192.0.2.1:2230"});
                    }),
                    "which no other host can reach, but ps 0 is at 192.0.2.1:2230");
    expect_contains(error_with([](auto& options) { options.secret.clear(); }), "needs a secret");
    expect_contains(error_with([](auto& options) { options.self = 1; }), "the list has 1 tasks");
    expect_contains(error_with([](auto& options) { options.streams = 0; }), "0 streams");
    expect_contains(error_with([](auto& options) { options.tls.certificate = "/no/such/file"; }),
                    "--tls-cert /no/such/file: No such file");
    return "";
  });
  const Outcome outcome = processes.wait(0);
  EXPECT_TRUE(outcome.is_success) << outcome.answer;
}

TEST(GrpcJoining, MembersHaveNames) {
  const auto outcomes = run_tasks(2, [](World& world) {
    expect(world.communicator().members()[1].name == "worker 1", "members have names");
    world.leave();
    return "";
  });
  for (const Outcome& outcome : outcomes) EXPECT_TRUE(outcome.is_success) << outcome.answer;
}

}  // namespace
}  // namespace trireme::comm::testkit
