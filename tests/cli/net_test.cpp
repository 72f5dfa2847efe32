// `trireme net` as a user meets it before anything is measured: refusals. What it measures is in tests/distributed.
#include <gtest/gtest.h>

#include "tests/cli/run_command.hpp"

namespace trireme::testkit {
namespace {

void expect_net_refused(const std::vector<std::string>& arguments, const std::string& part, int code = 2) {
  const CommandResult result = run_trireme(arguments);
  EXPECT_EQ(result.exit_code, code) << part;
  EXPECT_NE(result.err.find(part), std::string::npos) << result.err;
  EXPECT_EQ(result.out, "");
}

TEST(Net, OneTaskIsToldHowToStartSeveral) {
  expect_net_refused({"net"}, "trireme launch --workers 2 -- net");
  expect_net_refused({"launch", "--workers", "1", "--", "net"}, "one task has no peer to talk to");
}

TEST(Net, RefusesWhatCannotBeMeasured) {
  expect_net_refused({"net", "--local", "--max-bytes", "0"}, "--max-bytes 0: must be above --min-bytes");
  expect_net_refused({"net", "--local", "--min-bytes", "0"}, "--min-bytes 0: must be 1 or more");
  expect_net_refused({"net", "--local", "--seconds-per-size", "0"}, "--seconds-per-size 0");
  expect_net_refused({"net", "--local", "--transports", "pigeon"},
                     "--transports pigeon: must be one of tcp, grpc, ucx, mpi");
  expect_net_refused({"net", "--local", "--transports", "nccl"}, "this build has no NCCL", 3);
  expect_net_refused({"net", "--local", "--algorithms", "circle"}, "circle");
  expect_net_refused({"net", "--local", "--model", "resnet51"}, "resnet51");
  expect_net_refused({"net", "--local", "--model", "lenet", "--algorithms", "none"}, "--model has no effect");
  expect_net_refused({"launch", "--workers", "2", "--", "net", "--local"}, "leave it out inside a launch");
  expect_net_refused({"launch", "--workers", "2", "--ps", "1", "--", "net"}, "does not use parameter servers");
}

}  // namespace
}  // namespace trireme::testkit
