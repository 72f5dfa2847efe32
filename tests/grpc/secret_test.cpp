// Tasks prove to each other that they know the job's secret, and nobody learns it: not who listens to the network, not
// who answers in a task's place, not who says again what a task has said.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "impostor.hpp"
#include "processes.hpp"
#include "raw_socket.hpp"
#include "tests/comm/suite_check.hpp"
#include "trireme/comm/collectives.hpp"
#include "trireme/comm/grpc/proof.hpp"
#include "wire_tap.hpp"

namespace trireme::comm::testkit {
namespace {

using namespace std::chrono_literals;

void expect_in(const std::string& part, const std::string& text) {
  EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is not in '" << text << "'";
}

std::string all_that_was_sent() {
  std::string all;
  for (const auto& [descriptor, bytes] : wire_tap()) all += bytes;
  return all;
}

TEST(GrpcSecret, NeverTravels) {
  const auto tasks = local_tasks(3);
  Processes processes;
  for (int self = 0; self < 3; ++self) {
    processes.start([&, self]() -> std::string {
      start_wire_tap();
      const auto world = rpc::join(options_of(tasks, self));
      std::vector<float> values(100000, 1.0f);
      all_reduce(world->communicator(), values, Reduction::sum);
      barrier(world->communicator());
      world->leave();
      const std::string sent = all_that_was_sent();
      expect(sent.size() > values.size() * sizeof(float) / 2,
             "what is sent can be read: " + std::to_string(sent.size()));
      expect(sent.find("open sesame") == std::string::npos, "but not the secret");
      expect(sent.find("b3BlbiBzZXNhbWU") == std::string::npos, "nor in base64");
      return "";
    });
  }
  for (std::size_t i = 0; i < 3; ++i) {
    const Outcome outcome = processes.wait(i);
    EXPECT_TRUE(outcome.is_success) << outcome.answer;
  }
}

// Proofs differ by secret, by side, and by everything that both sides have said.
TEST(GrpcSecret, EveryProofIsForOneExchange) {
  const std::string proof = rpc::caller_proof("secret", "claim", "challenge");
  EXPECT_EQ(proof.size(), rpc::kProofBytes);
  EXPECT_TRUE(rpc::is_equal(proof, rpc::caller_proof("secret", "claim", "challenge")));
  for (const std::string& other :
       {rpc::answer_proof("secret", "claim", "challenge"), rpc::caller_proof("another", "claim", "challenge"),
        rpc::caller_proof("secret", "claimc", "hallenge"), rpc::caller_proof("secret", "", "claimchallenge"),
        proof.substr(1), proof + "x", std::string()}) {
    EXPECT_FALSE(rpc::is_equal(other, proof));
  }
  EXPECT_NE(rpc::random_bytes(32), rpc::random_bytes(32));
}

class GrpcImpostor : public testing::TestWithParam<Impostor> {};

TEST_P(GrpcImpostor, IsRecognisedAndLearnsNothing) {
  const auto tasks = local_tasks(2);
  Processes processes;
  processes.start([&] { return listen_as_impostor(tasks[0].address, GetParam()); });
  processes.start([&]() -> std::string {
    const bool is_slow = GetParam() == Impostor::silent || GetParam() == Impostor::stalls;
    auto options = options_of(tasks, 1);
    options.join_timeout = is_slow ? 3s : 30s;
    return error_of([&] { rpc::join(options); });
  });
  const Outcome task = processes.wait(1);
  EXPECT_TRUE(task.is_success) << task.answer;
  expect_in(tasks[0].address, task.answer);
  switch (GetParam()) {
    case Impostor::silent:
      expect_in("worker 0 (" + tasks[0].address + ") did not join within 3", task.answer);
      break;
    case Impostor::stalls:
      expect_in("worker 0 (" + tasks[0].address + ") did not join within 3", task.answer);
      expect_in("it does not prove that it knows the job's secret", task.answer);
      break;
    case Impostor::refuses:
      expect_in("worker 0 (" + tasks[0].address + ") refuses the secret of worker 1", task.answer);
      break;
    default:
      expect_in("the process listening at " + tasks[0].address + " is not worker 0 of this job", task.answer);
  }
  const Outcome heard = processes.wait(0);
  EXPECT_TRUE(heard.is_success) << heard.answer;
  EXPECT_FALSE(heard.answer.empty());
  EXPECT_EQ(heard.answer.find("open sesame"), std::string::npos);
  EXPECT_EQ(heard.answer.find(kBelieved), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(That, GrpcImpostor,
                         testing::Values(Impostor::silent, Impostor::refuses, Impostor::agrees, Impostor::stalls,
                                         Impostor::guesses, Impostor::reflects),
                         [](const auto& kind) { return to_string(kind.param); });

// The very bytes by which a task opened its stream to another, sent once more by somebody who has recorded them.
TEST(GrpcSecret, ARecordedCallIsRefused) {
  const auto tasks = local_tasks(2);
  Processes processes;
  processes.start([&]() -> std::string {
    std::atomic<bool> has_refused = false;
    auto options = options_of(tasks, 0);
    options.log = [&](const std::string& line) {
      if (line.find("its proof is old or from another connection") != std::string::npos) has_refused = true;
    };
    const auto world = rpc::join(options);
    for (int i = 0; i < 3; ++i) barrier(world->communicator());
    for (int i = 0; i < 500 && !has_refused; ++i) std::this_thread::sleep_for(10ms);
    expect(has_refused, "the second call is refused");
    expect(world->communicator().presence(1) == Presence::here, "and nobody is lost by it");
    barrier(world->communicator());
    world->leave();
    return "";
  });
  processes.start([&]() -> std::string {
    const auto world = rpc::join(options_of(tasks, 1));
    start_wire_tap();
    // After the second one, what this task has sent in the first has arrived: its connection for data stands.
    for (int i = 0; i < 2; ++i) barrier(world->communicator());
    const auto sent = wire_tap();
    std::vector<std::string> recorded;
    for (const auto& [descriptor, bytes] : sent) {
      if (bytes.starts_with("PRI * HTTP/2.0")) recorded.push_back(bytes);
    }
    expect(recorded.size() == 1, "the call had a connection of its own");
    barrier(world->communicator());
    const UniqueFd again = connect_to(tasks[0].address);
    send_all(again.get(), recorded[0]);
    barrier(world->communicator());
    world->leave();
    return "";
  });
  for (std::size_t i = 0; i < 2; ++i) {
    const Outcome outcome = processes.wait(i);
    EXPECT_TRUE(outcome.is_success) << outcome.answer;
  }
}

}  // namespace
}  // namespace trireme::comm::testkit
