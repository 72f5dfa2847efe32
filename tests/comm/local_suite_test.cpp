// The suite of all communicators over threads.
#include <gtest/gtest.h>

#include "communicator_suite.hpp"
#include "trireme/comm/local/run_local.hpp"

namespace trireme::comm::testkit {
namespace {

class LocalSuite : public testing::TestWithParam<SuiteCase> {};

TEST_P(LocalSuite, Holds) {
  for (const int size : {1, 2, 3, 4}) {
    EXPECT_NO_THROW(run_local(size, GetParam().body)) << size << " ranks";
  }
  EXPECT_NO_THROW(run_local({.size = 5, .ranks_per_node = 2}, GetParam().body)) << "5 ranks on 3 nodes";
}

INSTANTIATE_TEST_SUITE_P(Comm, LocalSuite, testing::ValuesIn(communicator_suite()),
                         [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace trireme::comm::testkit
