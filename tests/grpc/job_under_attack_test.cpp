// Training with parameter servers while strangers call its tasks: the results are those of a job that is left alone.
#include <gtest/gtest.h>
#include <signal.h>

#include "attacker.hpp"
#include "processes.hpp"
#include "tests/distributed/bench_record.hpp"
#include "tests/distributed/started_by_hand.hpp"

namespace trireme::testkit {
namespace {

using namespace std::chrono_literals;
using comm::testkit::Attacker;
using comm::testkit::Processes;

std::vector<std::unique_ptr<RunningCommand>> start(const StartedByHand& job, const Words& options) {
  std::vector<std::unique_ptr<RunningCommand>> tasks;
  tasks.push_back(job.start("worker", 0, options));
  tasks.push_back(job.start("worker", 1));
  tasks.push_back(job.start("ps", 0));
  tasks.push_back(job.start("ps", 1));
  return tasks;
}

TEST(JobUnderAttack, AThousandBadCallsChangeNothing) {
  constexpr int kAttacks = 1000;
  const TemporaryFolder folder;
  ServerJob job{.workers = 2, .servers = 2, .steps = kForEver, .options = {"--deterministic"}};
  const StartedByHand attacked(job);
  const auto tasks = start(attacked, {"--record", folder / "attacked.json"});
  ASSERT_TRUE(tasks[0]->wait_for_output("\n1\timages/sec", 60s)) << tasks[0]->err();

  Processes processes;
  processes.start([&] {
    Attacker attacker({{"worker 0", attacked.worker(0)},
                       {"worker 1", attacked.worker(1)},
                       {"ps 0", attacked.server(0)},
                       {"ps 1", attacked.server(1)}},
                      StartedByHand::kSecret);
    for (int number = 0; number < kAttacks; ++number) attacker.attack(number);
    return attacker.surprises();
  });
  const comm::testkit::Outcome attack = processes.wait(0, 100s);
  EXPECT_TRUE(attack.is_success) << attack.answer;
  EXPECT_EQ(attack.answer, "") << "calls that were not refused as they should";

  // All workers end after the same step, and servers with them.
  kill(tasks[0]->pid(), SIGINT);
  for (const int worker : {0, 1}) EXPECT_EQ(tasks[worker]->exit_code(60s), 130) << tasks[worker]->err();
  for (const int server : {2, 3}) EXPECT_EQ(tasks[server]->exit_code(60s), 0) << tasks[server]->err();
  EXPECT_TRUE(has(tasks[2]->err(), "refused")) << tasks[2]->err();

  const nlohmann::json record = read_record(folder / "attacked.json");
  job.steps = static_cast<int>(record.at("losses").at(0).at(0).size());
  const StartedByHand left_alone(job);
  for (const auto& task : start(left_alone, {"--record", folder / "alone.json"})) {
    EXPECT_EQ(task->exit_code(100s), 0) << task->err();
  }
  EXPECT_EQ(record.at("losses"), read_record(folder / "alone.json").at("losses"));
}

}  // namespace
}  // namespace trireme::testkit
