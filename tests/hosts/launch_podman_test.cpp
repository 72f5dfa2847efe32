// `trireme launch --exec "podman run ..."`, where there is a Podman that can run on the hosts. The image is empty but
// for the folders on which the host's own /usr and the program are put.
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/hosts/launch_hosts.hpp"
#include "trireme/base/shell_text.hpp"

namespace trireme::testkit {
namespace {

using namespace std::chrono_literals;

// On hosts that share a file system each needs a store of its own. Limits and runtime as a machine without
// CAP_SYS_RESOURCE and with old cgroups needs them.
constexpr const char* kPodman = R"sh(#!/bin/sh
exec podman --root "$(dirname "$0")/store-$(hostname)" --runroot /run/podman --tmpdir /run/podman-tmp \
  --runtime runc --cgroup-manager cgroupfs "$@"
)sh";
// A host has its own /sys, without cgroups.
constexpr const char* kPrepare = R"sh(
set -e
mount -t tmpfs none /sys/fs/cgroup
for name in cpu cpuacct cpuset memory devices freezer pids blkio; do
  mkdir /sys/fs/cgroup/$name
  mount -t cgroup -o $name none /sys/fs/cgroup/$name || rmdir /sys/fs/cgroup/$name
done
root=/run/root
mkdir -p $root/usr $root/etc $root/tmp $root/proc $root/sys $root/dev $root/run
for name in bin sbin lib lib64; do ln -s usr/$name $root/$name; done
tar -C $root -c . | "$0" import - empty
"$0" run --rm --ulimit nofile=1024:1024 --ulimit nproc=1024:1024 -v /usr:/usr:ro empty true
)sh";

class LaunchPodman : public LaunchHosts {
 protected:
  void SetUp() override {
    LaunchHosts::SetUp();
    if (IsSkipped()) return;
    if (run_shell("command -v podman && command -v runc").code != 0) GTEST_SKIP() << "podman and runc are not here";
    podman_ = cluster_.folder() + "/podman";
    std::ofstream(podman_) << kPodman;
    std::filesystem::permissions(podman_, std::filesystem::perms::owner_all);
    for (const char* node : {"n0", "n1"}) {
      const CommandOutcome prepared =
          cluster_.run(std::string("exec ") + node + " sh -c " + shell_quoted(kPrepare) + " " + podman_);
      if (prepared.code != 0) GTEST_SKIP() << "podman cannot run here: " << prepared.output;
    }
  }

  Words in_podman(const std::string& options, Words rest) const {
    const std::string folder = std::filesystem::path(TRIREME_BINARY).parent_path();
    const std::string prefix = fmt::format(
        "{} run --rm --ulimit nofile=1024:1024 --ulimit nproc=1024:1024 -v /usr:/usr:ro -v {}:{}:ro {} empty", podman_,
        folder, folder, options);
    rest.insert(rest.begin(), {"--exec", prefix, "--remote-program", TRIREME_BINARY});
    return on_hosts("n0,n1", rest);
  }
  void expect_no_container() const {
    for (const char* node : {"n0", "n1"}) {
      std::string left;
      for (int i = 0; i < 60; ++i) {
        left =
            cluster_.on(node, "ps -eo args= | grep -e '[c]onmon' -e '[l]aunch-'; ls -d /dev/shm/trireme-* 2>/dev/null")
                .output;
        if (left.empty()) break;
        std::this_thread::sleep_for(200ms);
      }
      EXPECT_EQ(left, "") << node;
    }
  }

  std::string podman_;
};

TEST_F(LaunchPodman, ABenchmarkRunsInAContainerOnEachHost) {
  LaunchedJob job(in_podman("-i --network host", {"--", "bench", "--model", "lenet", "--batch-size", "4",
                                                  "--num-batches", "3", "--num-warmup-batches", "1"}));
  EXPECT_EQ(job.exit_code(90s), 0) << job.err();
  EXPECT_TRUE(has(job.out(), "2: 1 on n0, 1 on n1")) << job.out();
  EXPECT_TRUE(has(job.out(), "total images/sec")) << job.out();
  expect_no_container();
}

TEST_F(LaunchPodman, WhatIsMissingIsSaidAndNothingStays) {
  const Words script{"--program", "/bin/sh", "--", "-c", "echo ready; sleep 600"};
  {
    LaunchedJob job(in_podman("--network host", script));
    EXPECT_EQ(job.exit_code(30s), 3);
    EXPECT_TRUE(has(job.err(), "does not receive the launcher's input")) << job.err();
  }
  {
    LaunchedJob job(in_podman("-i --network none", script));
    EXPECT_EQ(job.exit_code(30s), 2);
    EXPECT_TRUE(has(job.err(), "--network host")) << job.err();
  }
  LaunchedJob job(in_podman("-i --network host", script));
  ASSERT_TRUE(job.wait_for_output("[0] ready") && job.wait_for_output("[1] ready")) << job.err();
  kill(job.pid(), SIGKILL);
  expect_no_container();
}

}  // namespace
}  // namespace trireme::testkit
