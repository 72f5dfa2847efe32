// The suite of all communicators over gRPC, between real processes.
#include <gtest/gtest.h>

#include <cstdlib>

#include "processes.hpp"
#include "tests/comm/communicator_suite.hpp"
#include "tests/support/temporary_folder.hpp"
#include "trireme/comm/collectives.hpp"

namespace trireme::comm::testkit {
namespace {

std::string run_suite(rpc::RpcWorld& world) {
  std::string doing;
  try {
    for (const SuiteCase& suite_case : communicator_suite()) {
      doing = suite_case.name;
      suite_case.body(world.communicator());
      barrier(world.communicator());
    }
  } catch (const std::exception& error) {
    throw std::runtime_error(doing + ": " + error.what());
  }
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
  for (const Outcome& outcome : run_tasks(options, run_suite)) {
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

TEST(GrpcSuiteVariant, Encrypted) {
  const trireme::testkit::TemporaryFolder folder;
  const std::string make_certificates =
      "cd '" + folder.path().string() +
      "' && openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=authority -keyout ca.key -out ca.pem"
      " && openssl req -newkey rsa:2048 -nodes -subj /CN=task -keyout task.key -out task.csr"
      " && echo subjectAltName=IP:127.0.0.1 > names"
      " && openssl x509 -req -in task.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile names -out "
      "task.pem";
  if (std::system(("(" + make_certificates + ") > '" + folder / "log" + "' 2>&1").c_str()) != 0) {
    GTEST_SKIP() << "no certificates could be made: the command openssl is missing or fails";
  }
  expect_suite(
      2,
      [&](rpc::RpcOptions& options) {
        options.tls = {.certificate = folder / "task.pem", .key = folder / "task.key", .authority = folder / "ca.pem"};
      },
      ", TLS");
}

}  // namespace
}  // namespace trireme::comm::testkit
