// The suite of all communicators over gRPC, between real processes.
#include <gtest/gtest.h>

#include "processes.hpp"
#include "tests/comm/communicator_suite.hpp"
#include "tests/support/temporary_folder.hpp"
#include "trireme/comm/collectives.hpp"

namespace trireme::comm::testkit {
namespace {

void run_suite(Communicator& communicator) {
  std::string doing;
  try {
    for (const SuiteCase& suite_case : communicator_suite()) {
      doing = suite_case.name;
      suite_case.body(communicator);
      barrier(communicator);
    }
  } catch (const std::exception& error) {
    throw std::runtime_error(doing + ": " + error.what());
  }
}

std::string run_suite_and_leave(World& world) {
  run_suite(world.communicator());
  world.leave();
  return world.communicator().transport();
}

void expect_suite(int count, const std::function<void(rpc::RpcOptions&)>& change, const std::string& transport) {
  const auto tasks = local_tasks(count);
  std::vector<rpc::RpcOptions> options;
  for (int self = 0; self < count; ++self) {
    options.push_back(options_of(tasks, self));
    change(options.back());
  }
  for (const Outcome& outcome : run_tasks(options, run_suite_and_leave)) {
    EXPECT_TRUE(outcome.is_success) << outcome.answer;
    EXPECT_NE(outcome.answer.find(transport), std::string::npos) << outcome.answer;
  }
}

class GrpcSuite : public testing::TestWithParam<int> {};

TEST_P(GrpcSuite, Holds) {
  expect_suite(
      GetParam(), [](rpc::RpcOptions&) {}, "over TCP, 2 streams");
}

INSTANTIATE_TEST_SUITE_P(Ranks, GrpcSuite, testing::Values(1, 2, 3, 4));

TEST(GrpcSuiteVariant, PartsCutSmallOverManyStreams) {
  expect_suite(
      3,
      [](rpc::RpcOptions& options) {
        options.part_bytes = 1000;
        options.streams = 5;
      },
      "5 streams");
}

TEST(GrpcSuiteVariant, OverUcxWithGrpcAsItsControl) {
  const auto outcomes = run_cluster(3, "grpc+ucx", [](World& world) {
    run_suite(world.communicator());
    const std::string transport = world.communicator().transport();
    world.leave();
    return transport;
  });
  if (!is_available(outcomes)) GTEST_SKIP() << outcomes[0].answer;
  for (const Outcome& outcome : outcomes) {
    EXPECT_TRUE(outcome.is_success) << outcome.answer;
    EXPECT_NE(outcome.answer.find("UCX"), std::string::npos) << outcome.answer;
  }
}

// A CA and the certificate of a task, signed by it. False: openssl is missing or fails.
bool make_certificates(const trireme::testkit::TemporaryFolder& folder) {
  const std::string command =
      "cd '" + folder.path().string() +
      "' && openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=authority -keyout ca.key -out ca.pem"
      " && openssl req -newkey rsa:2048 -nodes -subj /CN=task -keyout task.key -out task.csr"
      " && echo subjectAltName=IP:127.0.0.1 > names"
      " && openssl x509 -req -in task.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile names -out "
      "task.pem";
  return std::system(("(" + command + ") > '" + folder / "log" + "' 2>&1").c_str()) == 0;
}
constexpr const char* kNoCertificates = "no certificates could be made: the command openssl is missing or fails";

TlsFiles files_in(const trireme::testkit::TemporaryFolder& folder) {
  return {.certificate = folder / "task.pem", .key = folder / "task.key", .authority = folder / "ca.pem"};
}

// Task 0 has good files, task 1 has others: they do not meet.
void expect_strangers(const TlsFiles& good, const TlsFiles& other) {
  const auto tasks = local_tasks(2);
  std::vector<rpc::RpcOptions> options{options_of(tasks, 0), options_of(tasks, 1)};
  options[0].tls = good;
  options[1].tls = other;
  for (rpc::RpcOptions& each : options) each.join_timeout = std::chrono::milliseconds(1500);
  for (const Outcome& outcome : run_tasks(options, run_suite_and_leave)) {
    EXPECT_FALSE(outcome.is_success);
    EXPECT_NE(outcome.answer.find("did not join within"), std::string::npos) << outcome.answer;
  }
}

TEST(GrpcSuiteVariant, StrangersAreNotLetIn) {
  const trireme::testkit::TemporaryFolder folder, other_folder;
  if (!make_certificates(folder) || !make_certificates(other_folder)) GTEST_SKIP() << kNoCertificates;
  const TlsFiles good = files_in(folder), of_another_authority = files_in(other_folder);
  expect_strangers(good, {});
  expect_strangers(good, of_another_authority);
  // Trusts our authority, but has no certificate of it.
  TlsFiles unsigned_task = of_another_authority;
  unsigned_task.authority = good.authority;
  expect_strangers(good, unsigned_task);
}

TEST(GrpcSuiteVariant, Encrypted) {
  const trireme::testkit::TemporaryFolder folder;
  if (!make_certificates(folder)) GTEST_SKIP() << kNoCertificates;
  expect_suite(
      2, [&](rpc::RpcOptions& options) { options.tls = files_in(folder); }, ", TLS");
}

}  // namespace
}  // namespace trireme::comm::testkit
