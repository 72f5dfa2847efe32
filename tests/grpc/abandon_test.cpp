// Tasks that end early with transfers under way: nobody touches their memory afterwards.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>

#include <thread>

#include "processes.hpp"
#include "tests/comm/suite_check.hpp"
#include "trireme/comm/backoff.hpp"
#include "trireme/comm/collectives.hpp"

namespace trireme::comm::testkit {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kBytes = 64 << 20;
constexpr int kTag = 7;

// Memory that is gone when it is given back: whoever touches it then dies.
class Pages {
 public:
  Pages() {
    void* const memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    expect(memory != MAP_FAILED, "there is memory");
    bytes_ = {static_cast<std::byte*>(memory), kBytes};
  }
  ~Pages() { munmap(bytes_.data(), bytes_.size()); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  std::span<std::byte> bytes() { return bytes_; }

 private:
  std::span<std::byte> bytes_;
};

// Begins to send to and to receive from all others, in both communicators, waits until something moves, and fails.
void fail_in_the_middle(Communicator& first, Communicator& second) {
  std::vector<std::unique_ptr<Pages>> memory;
  const auto next = [&] { return memory.emplace_back(std::make_unique<Pages>())->bytes(); };
  for (Communicator* communicator : {&first, &second}) {
    for (int other = 0; other < first.size(); ++other) {
      if (other == first.rank()) continue;
      for (int i = 0; i < 3; ++i) {
        communicator->start_receive(next(), other, kTag);
        communicator->start_send(next(), other, kTag);
      }
    }
  }
  std::this_thread::sleep_for(30ms);
  const auto start = std::chrono::steady_clock::now();
  second.abandon();
  expect(std::chrono::steady_clock::now() - start < 4s, "giving up takes a moment");
  second.abandon();
}

std::string end_early(Communicator& first) {
  const auto second = first.split(0, first.rank());
  barrier(first);
  fail_in_the_middle(first, *second);
  std::this_thread::sleep_for(500ms);  // what still moves would touch it now
  std::byte byte{};
  expect_contains(error_of([&] { first.send({&byte, 1}, 1 - first.rank(), kTag); }), "given up");
  expect_contains(error_of([&] { second->receive({&byte, 1}, 1 - first.rank(), kTag); }), "given up");
  return "";
}

TEST(GrpcAbandon, NobodyTouchesTheMemoryAfterwards) {
  for (int round = 0; round < 3; ++round) {
    const auto outcomes = run_tasks(2, [](World& world) { return end_early(world.communicator()); });
    for (const Outcome& outcome : outcomes) EXPECT_TRUE(outcome.is_success) << outcome.answer;
  }
}

TEST(GrpcAbandon, NorOverUcx) {
  const auto outcomes = run_cluster(2, "grpc+ucx", [](World& world) { return end_early(world.communicator()); });
  if (!is_available(outcomes)) GTEST_SKIP() << outcomes[0].answer;
  for (const Outcome& outcome : outcomes) EXPECT_TRUE(outcome.is_success) << outcome.answer;
}

TEST(GrpcAbandon, OverUcxTheOthersLoseWhoGivesUp) {
  const auto outcomes = run_cluster(2, "grpc+ucx", [](World& world) -> std::string {
    const auto second = world.communicator().split(0, world.communicator().rank());
    if (world.communicator().rank() == 0) {
      fail_in_the_middle(world.communicator(), *second);
      std::this_thread::sleep_for(1s);
      return "";
    }
    Pages pages;
    std::string error;
    for (int i = 0; i < 4 && error.empty(); ++i) {
      error = error_of([&] { world.communicator().receive(pages.bytes(), 0, kTag); });
    }
    expect(!error.empty(), "what is waited for does not come");
    second->abandon();
    return "";
  });
  if (!is_available(outcomes)) GTEST_SKIP() << outcomes[0].answer;
  for (const Outcome& outcome : outcomes) EXPECT_TRUE(outcome.is_success) << outcome.answer;
}

TEST(GrpcAbandon, TheOthersLoseWhoGivesUp) {
  const auto outcomes = run_tasks(2, [](World& world) -> std::string {
    Communicator& communicator = world.communicator();
    const auto second = communicator.split(0, communicator.rank());
    if (communicator.rank() == 0) {
      fail_in_the_middle(communicator, *second);
      std::this_thread::sleep_for(1s);  // it is its word, not its end, that is heard
      return "";
    }
    Pages pages;
    expect_contains(error_of([&] {
                      for (int i = 0; i < 4; ++i) communicator.receive(pages.bytes(), 0, kTag);
                    }),
                    "lost worker 0");
    expect(communicator.presence(0) == Presence::lost, "it is lost");
    second->abandon();
    return "";
  });
  for (const Outcome& outcome : outcomes) EXPECT_TRUE(outcome.is_success) << outcome.answer;
}

TEST(GrpcAbandon, AThreadThatWaitsGetsAnError) {
  const auto outcomes = run_tasks(2, [](World& world) -> std::string {
    Communicator& communicator = world.communicator();
    const auto second = communicator.split(0, communicator.rank());
    barrier(communicator);
    std::string error;
    std::thread waiting([&] {
      std::byte never{};
      error = error_of([&] { second->receive({&never, 1}, 1 - communicator.rank(), kTag); });
    });
    std::this_thread::sleep_for(50ms);
    communicator.abandon();
    waiting.join();
    expect(!error.empty(), "the thread hears of it");
    return "";
  });
  for (const Outcome& outcome : outcomes) EXPECT_TRUE(outcome.is_success) << outcome.answer;
}

// A task that is stopped takes nothing: the connection to it stays full, and the kernel has bytes to send. It copies
// them only when there is room, and finds no memory then.
TEST(GrpcAbandon, AStoppedTaskIsNotWaitedForLong) {
  const auto tasks = local_tasks(2);
  Processes processes;
  for (int self = 0; self < 2; ++self) {
    processes.start([&, self]() -> std::string {
      auto options = options_of(tasks, self);
      options.liveness = {.ping_every = 500ms, .answer_within = 1500ms};
      const auto world = rpc::join(options);
      const auto second = world->communicator().split(0, self);
      barrier(world->communicator());
      if (self == 1) raise(SIGSTOP);
      fail_in_the_middle(world->communicator(), *second);
      return "";
    });
  }
  const Outcome outcome = processes.wait(0);
  EXPECT_TRUE(outcome.is_success) << outcome.answer;
}

}  // namespace
}  // namespace trireme::comm::testkit
