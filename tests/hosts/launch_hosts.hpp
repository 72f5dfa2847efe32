// What the tests of jobs on several hosts have in common: a cluster for each test, and the command lines of launches on
// it.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/distributed/launched_job.hpp"
#include "tests/distributed/running_command.hpp"
#include "tests/hosts/test_cluster.hpp"

namespace trireme::testkit {

class LaunchHosts : public ::testing::Test {
 protected:
  static constexpr int kNodes = 3;

  void SetUp() override {
    if (!cluster_.reason_to_skip().empty()) GTEST_SKIP() << cluster_.reason_to_skip();
  }

  // The options that name the hosts, then the rest.
  Words on_hosts(const std::string& hosts, Words rest) const {
    rest.insert(rest.begin(), {"--ssh-config", cluster_.ssh_config(), "--hosts", hosts, "--oversubscribe"});
    return rest;
  }
  Words script_on(const std::string& hosts, int workers, const std::string& script) const {
    return on_hosts(hosts, {"--workers", std::to_string(workers), "--program", "/bin/sh", "--", "-c", script});
  }
  void expect_nothing_left(int seconds = 5) const {
    for (int i = 0; i < kNodes; ++i) cluster_.expect_empty(fmt::format("n{}", i), seconds);
  }

  TestCluster cluster_{kNodes};
};

}  // namespace trireme::testkit
