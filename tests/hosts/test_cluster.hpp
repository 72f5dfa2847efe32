// A cluster of tools/testcluster: made with the object, removed with it. Where this machine cannot have one, the
// reason is there instead, and the test is to be skipped.
#pragma once

#include <string>

#include "tests/support/temporary_folder.hpp"

namespace trireme::testkit {

struct CommandOutcome {
  int code = 0;
  std::string output;  // stdout and stderr
};
CommandOutcome run_shell(const std::string& command);

enum class WithSlurm { no, yes };

class TestCluster {
 public:
  explicit TestCluster(int nodes, WithSlurm slurm = WithSlurm::no);
  ~TestCluster();
  TestCluster(const TestCluster&) = delete;
  TestCluster& operator=(const TestCluster&) = delete;

  const std::string& reason_to_skip() const { return reason_; }
  std::string ssh_config() const { return folder_ + "/ssh_config"; }
  std::string hostfile() const { return folder_ + "/hostfile"; }
  const std::string& folder() const { return folder_; }

  CommandOutcome run(const std::string& arguments) const;  // of testcluster, quoted for a shell
  CommandOutcome on(const std::string& node, const std::string& script) const;
  // Nothing but its sshd and Slurm's daemons runs on the node, and /dev/shm is empty; waits so long for that.
  void expect_empty(const std::string& node, int seconds) const;

 private:
  TemporaryFolder temporary_;
  std::string folder_, reason_;
};

}  // namespace trireme::testkit
