// A running job under attack: malformed and unauthenticated calls change nothing in its results and crash nothing.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <thread>

#include "attacker.hpp"
#include "processes.hpp"
#include "tests/comm/suite_check.hpp"
#include "trireme/comm/collectives.hpp"

namespace trireme::comm::testkit {
namespace {

// Seen by all processes that are forked after it was made.
struct Signals {
  std::atomic<int> running{0};
  std::atomic<bool> is_over{false};
};
Signals* make_signals() {
  void* const memory = mmap(nullptr, sizeof(Signals), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return new (memory) Signals;
}

// All-reduces checked numbers until the attack is over; how often.
std::string work_until(World& world, Signals& signals) {
  Communicator& communicator = world.communicator();
  int rounds = 0;
  for (float is_over = 0; is_over == 0; ++rounds) {
    std::vector<float> values(50000, static_cast<float>(communicator.rank() + rounds));
    values[0] = signals.is_over && communicator.rank() == 0 ? 1.0f : 0.0f;
    all_reduce(communicator, values, Reduction::sum);
    is_over = values[0];
    for (std::size_t i = 1; i < values.size(); ++i) {
      expect(values[i] == static_cast<float>(2 * rounds + 1), "sums are right");
    }
    if (rounds == 0) ++signals.running;
  }
  for (const int rank : {0, 1}) expect(communicator.presence(rank) == Presence::here, "nobody was lost");
  barrier(communicator);
  world.leave();
  return std::to_string(rounds);
}

TEST(GrpcRobustness, AThousandBadCallsChangeNothing) {
  constexpr int kAttacks = 1000;
  Signals& signals = *make_signals();
  const auto tasks = local_tasks(2);
  Processes processes;
  std::atomic<int> lines = 0;
  for (int self = 0; self < 2; ++self) {
    processes.start([&, self] {
      auto options = options_of(tasks, self);
      options.log = [&](const std::string&) { ++lines; };
      const auto world = rpc::join(options);
      const std::string rounds = work_until(*world, signals);
      expect(lines < 20, "a flood of calls does not flood the log");
      expect(lines > 0, "refused calls are logged");
      return rounds;
    });
  }
  processes.start([&] {
    while (signals.running < 2) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    Attacker attacker(tasks, options_of(tasks, 0).secret);
    for (int i = 0; i < kAttacks; ++i) attacker.attack(i);
    signals.is_over = true;
    return attacker.surprises();
  });
  const Outcome attack = processes.wait(2, std::chrono::seconds(100));
  EXPECT_TRUE(attack.is_success) << attack.answer;
  EXPECT_EQ(attack.answer, "") << "calls that were not refused as they should";
  signals.is_over = true;
  for (std::size_t i = 0; i < 2; ++i) {
    const Outcome task = processes.wait(i, std::chrono::seconds(20));
    EXPECT_TRUE(task.is_success) << task.answer;
  }
  munmap(&signals, sizeof signals);
}

TEST(GrpcRobustness, AMalformedFrameEndsItsStreamAndHarmsNobodyElse) {
  Processes processes;
  processes.start([] { return send_malformed_frames(local_tasks(3)); });
  const Outcome outcome = processes.wait(0);
  EXPECT_TRUE(outcome.is_success) << outcome.answer;
}

}  // namespace
}  // namespace trireme::comm::testkit
