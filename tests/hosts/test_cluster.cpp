#include "tests/hosts/test_cluster.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <thread>

#include "trireme/base/shell_text.hpp"

namespace trireme::testkit {
namespace {

constexpr int kCannotHaveOne = 77;

}  // namespace

CommandOutcome run_shell(const std::string& command) {
  CommandOutcome outcome;
  FILE* pipe = popen((command + " 2>&1 </dev/null").c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error("cannot run a shell");
  std::array<char, 4096> chunk{};
  while (const std::size_t count = fread(chunk.data(), 1, chunk.size(), pipe))
    outcome.output.append(chunk.data(), count);
  const int status = pclose(pipe);
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return outcome;
}

TestCluster::TestCluster(int nodes, WithSlurm slurm) : folder_(temporary_ / "c") {
  const CommandOutcome made = run("up --nodes " + std::to_string(nodes) + (slurm == WithSlurm::yes ? " --slurm" : ""));
  if (made.code == kCannotHaveOne) {
    reason_ = made.output;
  } else if (made.code != 0) {
    run("down");  // an `up` that was killed has not cleaned up; and without an object nobody else does
    throw std::runtime_error("testcluster up: " + made.output);
  }
}

TestCluster::~TestCluster() {
  if (!reason_.empty()) return;
  const CommandOutcome removed = run("down");
  EXPECT_EQ(removed.code, 0) << removed.output;
}

CommandOutcome TestCluster::run(const std::string& arguments) const {
  return run_shell(std::string(TRIREME_TESTCLUSTER) + " --folder " + folder_ + " " + arguments);
}

CommandOutcome TestCluster::on(const std::string& node, const std::string& script) const {
  return run("exec " + node + " sh -c " + shell_quoted(script));
}

void TestCluster::expect_empty(const std::string& node, int seconds) const {
  CommandOutcome left;
  for (int i = 0; i < seconds * 5; ++i) {
    left = on(node,
              "ps -eo pid=,args= | grep -v -e sshd -e slurmd -e munged -e \"^ *$$ \" -e 'ps -eo' -e grep; ls /dev/shm");
    if (left.output.empty()) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
  ADD_FAILURE() << "left on " << node << ":\n" << left.output;
}

}  // namespace trireme::testkit
