// `trireme launch --ship`: hosts that do not have the program.
#include <gtest/gtest.h>
#include <signal.h>

#include "tests/hosts/launch_hosts.hpp"

namespace trireme::testkit {
namespace {

using namespace std::chrono_literals;

class LaunchShip : public LaunchHosts {
 protected:
  static constexpr const char* kFolder = "/run/ship";  // each host has its own /run

  void SetUp() override {
    LaunchHosts::SetUp();
    if (IsSkipped()) return;
    // On the hosts neither the program nor its libraries can be used.
    for (int i = 0; i < kNodes; ++i) {
      const CommandOutcome hidden = cluster_.on(
          fmt::format("n{}", i), std::string("set -e; for library in libfmt libhwloc libgrpc libstdc++; do for path in "
                                             "$(ldd " TRIREME_BINARY " | grep -o \"/[^ ]*/$library\\.[^ ]*\"); do "
                                             "mount --bind /dev/null $(readlink -f $path); done; done; "
                                             "mount --bind /dev/null " TRIREME_BINARY));
      ASSERT_EQ(hidden.code, 0) << hidden.output;
    }
  }

  Words shipped(const std::string& folder, const std::string& hosts, Words rest) const {
    rest.insert(rest.begin(), {"--ship", "--ship-dir", folder});
    return on_hosts(hosts, rest);
  }
  std::string list(const std::string& node, const std::string& folder) const {
    return cluster_.on(node, "ls -A " + folder).output;
  }
};

TEST_F(LaunchShip, ABenchmarkRunsWhereTheProgramWasNotAndTravelsOnce) {
  const Words bench{
      "--", "bench", "--model", "lenet", "--batch-size", "4", "--num-batches", "3", "--num-warmup-batches", "1"};
  {
    LaunchedJob job(on_hosts("n0,n1", bench));
    EXPECT_EQ(job.exit_code(), 3);
    EXPECT_TRUE(has(job.err(), "copy it there with --ship")) << job.err();
  }
  {
    LaunchedJob job(shipped(kFolder, "n0,n1", bench));
    EXPECT_EQ(job.exit_code(60s), 0) << job.err();
    EXPECT_TRUE(has(job.out(), "total images/sec")) << job.out();
    EXPECT_TRUE(has(job.err(), "trireme: n1: copied ")) << job.err();
  }
  {
    LaunchedJob job(shipped(kFolder, "n0,n1,n2", bench));
    EXPECT_EQ(job.exit_code(60s), 0) << job.err();
    EXPECT_TRUE(has(job.err(), "trireme: n1: has /run/ship/")) << job.err();
    EXPECT_TRUE(has(job.err(), "trireme: n2: copied ")) << "the one that has it not: " << job.err();
  }
  expect_nothing_left();
}

TEST_F(LaunchShip, TheLatestFewAreKeptAndNothingElseIsTouched) {
  cluster_.on("n0",
              "cd /run && mkdir -p ship/mine ship/0123456789abcdef && cd ship && for i in 1 2 3 4; do "
              "mkdir 000000000000000$i && : > 000000000000000$i/trireme && chmod +x 000000000000000$i/trireme && "
              "touch -d @$i 000000000000000$i; done");
  LaunchedJob job(shipped(kFolder, "n0", {"--program", "/bin/true"}));
  EXPECT_EQ(job.exit_code(30s), 0) << job.err();
  const std::string left = list("n0", kFolder);
  EXPECT_TRUE(has(left, "mine") && has(left, "0123456789abcdef")) << "no shipments: " << left;
  EXPECT_TRUE(has(left, "0000000000000004")) << left;
  EXPECT_FALSE(has(left, "0000000000000002") || has(left, "0000000000000001")) << left;
}

TEST_F(LaunchShip, HostsThatShareTheFolderDoNotDisturbEachOther) {
  const std::string folder = cluster_.folder() + "/shared ship";
  LaunchedJob job(shipped(folder, "n0,n1,n2", {"--program", "/bin/true"}));
  EXPECT_EQ(job.exit_code(60s), 0) << job.err();
  const std::string left = list("n0", "'" + folder + "'");
  EXPECT_EQ(left.size(), 17U) << "one folder and its end of line: " << left;
}

TEST_F(LaunchShip, AHostWithoutRoomOrWithoutTheRightToWriteIsNamed) {
  cluster_.on("n1", "mkdir -p /run/ship && mount -t tmpfs -o size=10m,mode=700 none /run/ship");
  {
    LaunchedJob job(shipped(kFolder, "n0,n1", {"--program", "/bin/true"}));
    EXPECT_EQ(job.exit_code(30s), 3);
    EXPECT_TRUE(has(job.err(), "error: n1: cannot copy trireme to it: /run/ship has room for 10 MB")) << job.err();
  }
  cluster_.on("n1", "mount -o remount,ro /run/ship");
  {
    LaunchedJob job(shipped("/run/ship/here", "n0,n1", {"--program", "/bin/true"}));
    EXPECT_EQ(job.exit_code(30s), 3);
    EXPECT_TRUE(has(job.err(), "error: n1: cannot copy trireme to it: ")) << job.err();
    EXPECT_TRUE(has(job.err(), "Read-only file system")) << job.err();
  }
  expect_nothing_left();
}

TEST_F(LaunchShip, AHostThatCannotBeReachedIsNamed) {
  cluster_.run("stop n1");
  LaunchedJob job(shipped(kFolder, "n0,n1", {"--program", "/bin/true"}));
  EXPECT_EQ(job.exit_code(30s), 3);
  EXPECT_TRUE(has(job.err(), "error: n1: ssh cannot reach it: ")) << job.err();
}

TEST_F(LaunchShip, AKilledLauncherLeavesNothingHalfWritten) {
  cluster_.run("shape 50mbit");
  LaunchedJob job(shipped(kFolder, "n0", {"--program", "/bin/true"}));
  for (int i = 0; i < 100 && !has(list("n0", kFolder), ".new."); ++i) cluster_.on("n0", "sleep 0.1");
  ASSERT_TRUE(has(list("n0", kFolder), ".new.")) << job.err();
  kill(job.pid(), SIGKILL);
  expect_nothing_left();
  EXPECT_EQ(list("n0", kFolder), "");
}

TEST_F(LaunchShip, OptionsThatContradictEachOtherAreRefused) {
  for (const Words& options : {Words{"--ship", "--remote-program", "/x"}, Words{"--ship-dir", "/x"}}) {
    Words rest = options;
    rest.insert(rest.end(), {"--program", "/bin/true"});
    LaunchedJob job(on_hosts("n0", rest));
    EXPECT_EQ(job.exit_code(), 2) << job.err();
  }
}

}  // namespace
}  // namespace trireme::testkit
