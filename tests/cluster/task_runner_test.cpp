#include "trireme/cluster/task_runner.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>

#include "tests/support/temporary_folder.hpp"
#include "trireme/base/error.hpp"
#include "trireme/cluster/channel.hpp"
#include "trireme/cluster/environment.hpp"
#include "trireme/cluster/launched_teams.hpp"

namespace trireme::cluster {
namespace {

// This process as a task: what it sends arrives at the test instead of a runner.
class TaskOfLauncher : public ::testing::Test {
 protected:
  void SetUp() override {
    auto [program, runner] = socket_pair();
    program_ = std::move(program);
    runner_.emplace(std::move(runner));
    struct stat status {};
    ASSERT_EQ(fstat(program_.get(), &status), 0);
    setenv(kLinkVariable, (std::to_string(program_.get()) + ":" + std::to_string(status.st_ino)).c_str(), 1);
    setenv(kRecordVariable, kFromLauncher, 1);
  }
  void TearDown() override {
    unsetenv(kLinkVariable);
    unsetenv(kRecordVariable);
  }
  std::vector<nlohmann::json> received() {
    std::vector<nlohmann::json> messages;
    EXPECT_TRUE(runner_->receive(messages));
    return messages;
  }

  testkit::TemporaryFolder folder_;
  UniqueFd program_;
  std::optional<Channel> runner_;
};

TEST_F(TaskOfLauncher, SendsItsRecord) {
  const std::string path = folder_ / "record.json";
  check_record_path(folder_ / "is/not/there");  // the launcher has checked it
  write_record({{"schema", "trireme.run/1"}, {"host", "a\xff"}}, path);
  const auto messages = received();
  ASSERT_EQ(messages.size(), 1U);
  EXPECT_EQ(messages[0].at("type"), "record");
  const std::string text = messages[0].at("text");
  EXPECT_EQ(Json::parse(text).at("schema"), "trireme.run/1");
  EXPECT_EQ(text.back(), '\n');
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(TaskOfLauncher, HearsWhoIsLeft) {
  using namespace std::chrono_literals;
  LaunchedTeams teams(4);
  EXPECT_EQ(teams.newest().ranks, (std::vector<int>{0, 1, 2, 3}));
  EXPECT_FALSE(teams.wait_for_newer(1, 0ms));
  teams.begin_step(0);
  teams.begin_step(1);
  const auto messages = received();
  ASSERT_EQ(messages.size(), 1U) << "it says once that it trains";
  EXPECT_EQ(messages[0].at("type"), "trains");
  runner_->send({{"type", "members"}, {"epoch", 2}, {"workers", {0, 2, 3}}});
  const auto team = teams.wait_for_newer(1, 30s);
  ASSERT_TRUE(team);
  EXPECT_EQ(team->epoch, 2);
  EXPECT_EQ(team->ranks, (std::vector<int>{0, 2, 3}));
}

TEST_F(TaskOfLauncher, ThatCannotSendItsRecordSaysWhere) {
  setenv(kLinkVariable, "7:1", 1);
  try {
    write_record({}, "somewhere.json");
    FAIL() << "was sent";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("somewhere.json"), std::string::npos) << error.what();
  }
}

TEST_F(TaskOfLauncher, WritesItsRecordItselfUnlessTold) {
  unsetenv(kRecordVariable);
  const std::string path = folder_ / "record.json";
  EXPECT_THROW(check_record_path(folder_ / "is/not/there"), Error);
  write_record({{"schema", "trireme.run/1"}}, path);
  EXPECT_TRUE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace trireme::cluster
