// Tasks that leave, die or go silent while others go on.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <numeric>
#include <thread>

#include "processes.hpp"
#include "tests/comm/suite_check.hpp"
#include "trireme/comm/backoff.hpp"
#include "trireme/comm/collectives.hpp"

namespace trireme::comm::testkit {
namespace {

using namespace std::chrono_literals;

constexpr int kTag = 7;

// Looks after one transfer alone, whatever becomes of other ranks.
void finish(Communicator& communicator, Transfer transfer) {
  Backoff backoff;
  while (!communicator.done(transfer)) {
    communicator.doze(backoff);
    expect(backoff.waited() < std::chrono::seconds(30), "a transfer ends");
  }
}

std::vector<int> numbers(int seed, std::size_t count) {
  std::vector<int> values(count);
  std::iota(values.begin(), values.end(), seed);
  return values;
}

// Ranks 0 and 1 send each other some MB and check them.
void exchange(Communicator& communicator, int round) {
  const int other = 1 - communicator.rank();
  const auto sent = numbers(round * 2 + communicator.rank(), 700000);
  std::vector<int> received(sent.size());
  const Transfer receive = communicator.start_receive(std::as_writable_bytes(std::span(received)), other, kTag);
  const Transfer send = communicator.start_send(std::as_bytes(std::span(sent)), other, kTag);
  finish(communicator, receive);
  finish(communicator, send);
  expect(received == numbers(round * 2 + other, sent.size()), "what is received is what was sent");
}

// Returns on rank 2 when the others are past the barrier: what it has sent for that has come.
void meet_before_the_end(Communicator& communicator) {
  barrier(communicator);
  char byte = 0;
  const std::span bytes = std::as_writable_bytes(std::span(&byte, 1));
  if (communicator.rank() != 2) return finish(communicator, communicator.start_send(bytes, 2, kTag + 2));
  for (const int other : {0, 1}) finish(communicator, communicator.start_receive(bytes, other, kTag + 2));
}

// Rank 2 ends in some way while the others exchange messages and wait for it; they go on afterwards.
std::string go_on_without(World& world, Presence expected, const std::string& words) {
  Communicator& communicator = world.communicator();
  std::vector<int> never(100000);
  const Transfer receive = communicator.start_receive(std::as_writable_bytes(std::span(never)), 2, kTag);
  Backoff backoff;
  int round = 0;
  for (int more = 3; more > 0; ++round) {
    exchange(communicator, round);
    if (communicator.presence(2) != Presence::here) --more;
    expect(backoff.waited() < std::chrono::seconds(30), "the others notice");
    // Both have to do the same number of rounds.
    const int mine = more, other = 1 - communicator.rank();
    int theirs = 0;
    const Transfer told = communicator.start_receive(std::as_writable_bytes(std::span(&theirs, 1)), other, kTag + 1);
    finish(communicator, communicator.start_send(std::as_bytes(std::span(&mine, 1)), other, kTag + 1));
    finish(communicator, told);
    more = std::max(more, theirs);
  }
  expect(communicator.presence(2) == expected, "how it is gone is known");
  const std::string error = error_of([&] { finish(communicator, receive); });
  expect_contains(error, words);
  expect_contains(error, "worker 2");
  const std::vector<int> large(100000);
  expect_contains(
      error_of([&] { finish(communicator, communicator.start_send(std::as_bytes(std::span(large)), 2, kTag)); }),
      "worker 2");
  world.leave();
  return "";
}

TEST(GrpcAbsence, AKilledTaskIsLostAndOthersGoOn) {
  const auto outcomes = run_tasks(3, [](World& world) -> std::string {
    meet_before_the_end(world.communicator());
    if (world.communicator().rank() == 2) raise(SIGKILL);
    return go_on_without(world, Presence::lost, "lost worker 2");
  });
  EXPECT_TRUE(outcomes[0].is_success) << outcomes[0].answer;
  EXPECT_TRUE(outcomes[1].is_success) << outcomes[1].answer;
  EXPECT_EQ(outcomes[2].signal, SIGKILL);
}

TEST(GrpcAbsence, ASilentTaskIsLost) {
  const auto tasks = local_tasks(3);
  Processes processes;
  for (int self = 0; self < 3; ++self) {
    processes.start([&, self]() -> std::string {
      auto options = options_of(tasks, self);
      options.liveness = {.ping_every = 500ms, .answer_within = 1500ms};
      const auto world = rpc::join(options);
      meet_before_the_end(world->communicator());
      if (self == 2) raise(SIGSTOP);  // as a host that has lost its power
      return go_on_without(*world, Presence::lost, "lost worker 2");
    });
  }
  for (std::size_t i = 0; i < 2; ++i) {
    const Outcome outcome = processes.wait(i);
    EXPECT_TRUE(outcome.is_success) << outcome.answer;
  }
}

// As a virtual machine that is moved, or a host that is short of memory.
TEST(GrpcAbsence, APauseIsNoLoss) {
  const auto outcomes = run_tasks(2, [](World& world) -> std::string {
    exchange(world.communicator(), 0);
    if (world.communicator().rank() == 1) {
      const pid_t paused = getpid();
      const pid_t waker = fork();
      if (waker == 0) {
        std::this_thread::sleep_for(2500ms);
        kill(paused, SIGCONT);
        std::_Exit(0);
      }
      raise(SIGSTOP);
      waitpid(waker, nullptr, 0);
    }
    exchange(world.communicator(), 1);
    world.leave();
    return "";
  });
  for (const Outcome& outcome : outcomes) EXPECT_TRUE(outcome.is_success) << outcome.answer;
}

TEST(GrpcAbsence, WhatWasSentBeforeLeavingArrives) {
  const auto outcomes = run_tasks(3, [](World& world) -> std::string {
    Communicator& communicator = world.communicator();
    const std::size_t count = 3000000;
    if (communicator.rank() == 2) {
      const auto sent = numbers(5, count);
      communicator.start_send(std::as_bytes(std::span(sent)), 0, kTag + 2);
      const Transfer to_one = communicator.start_send(std::as_bytes(std::span(sent)), 1, kTag + 2);
      world.leave();
      communicator.wait(to_one);
      return "";
    }
    Backoff backoff;
    while (communicator.presence(2) == Presence::here) communicator.doze(backoff);
    std::this_thread::sleep_for(std::chrono::milliseconds(300));  // its process has ended: a wait must not mind
    std::vector<int> received(count);
    communicator.receive(std::as_writable_bytes(std::span(received)), 2, kTag + 2);
    expect(received == numbers(5, count), "a message outlives its sender");
    return go_on_without(world, Presence::left, "has left");
  });
  for (const Outcome& outcome : outcomes) EXPECT_TRUE(outcome.is_success) << outcome.answer;
}

}  // namespace
}  // namespace trireme::comm::testkit
