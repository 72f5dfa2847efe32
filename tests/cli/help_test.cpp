// `--help`, `trireme help` and `--version`.
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <sstream>

#include "tests/cli/refusal.hpp"

namespace trireme::testkit {
namespace {

using Words = std::vector<std::string>;

std::size_t longest_line(const std::string& text) {
  std::istringstream lines(text);
  std::size_t longest = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.ends_with('\r')) line.pop_back();  // terminals have it
    longest = std::max(longest, line.size());
  }
  return longest;
}

std::string help_of(const Words& command, const CommandOptions& options = {}) {
  Words words = command;
  words.emplace_back("--help");
  const CommandResult result = run_trireme(words, options);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  return result.out;
}

// On a terminal of this width.
std::string help_on_terminal(unsigned short columns) {
  int terminal = -1;
  const winsize size{.ws_row = 24, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
  const pid_t child = forkpty(&terminal, nullptr, nullptr, &size);
  if (child == 0) {
    unsetenv("COLUMNS");
    execl(TRIREME_BINARY, TRIREME_BINARY, "bench", "--help", nullptr);
    _exit(127);
  }
  std::string text;
  std::array<char, 4096> chunk{};
  for (ssize_t count = 0; (count = read(terminal, chunk.data(), chunk.size())) > 0;) {
    text.append(chunk.data(), count);
  }
  close(terminal);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << text;
  return text;
}

const std::vector<Words> kCommands{{},
                                   {"bench"},
                                   {"train"},
                                   {"eval"},
                                   {"sweep"},
                                   {"tune"},
                                   {"compare"},
                                   {"report"},
                                   {"models"},
                                   {"data"},
                                   {"data", "make"},
                                   {"data", "convert"},
                                   {"data", "inspect"},
                                   {"data", "verify"},
                                   {"export"},
                                   {"net"},
                                   {"doctor"},
                                   {"launch"},
                                   {"help"}};

TEST(Help, FitsTheWidthOfEveryCommand) {
  for (const Words& command : kCommands) {
    const std::string name = command.empty() ? "trireme" : command.back();
    EXPECT_LE(longest_line(help_of(command, {.environment = {"COLUMNS=80"}})), 80U) << name;
    EXPECT_LE(longest_line(help_of(command, {.environment = {"COLUMNS=120"}})), 120U) << name;
  }
}

TEST(Help, FollowsTheTerminal) {
  const std::size_t narrow = longest_line(help_on_terminal(72)), wide = longest_line(help_on_terminal(110));
  EXPECT_LE(narrow, 72U);
  EXPECT_GT(narrow, 60U);
  EXPECT_LE(wide, 110U);
  EXPECT_GT(wide, 100U);
  EXPECT_LE(longest_line(help_on_terminal(300)), 120U) << "longer lines are hard to read";
}

TEST(Help, HasAWidthOfItsOwnInAFile) {
  const std::string text = help_of({"bench"}, {.environment = {"COLUMNS=", "TERM=dumb"}});
  EXPECT_LE(longest_line(text), 100U);
  EXPECT_GT(longest_line(text), 90U);
  EXPECT_EQ(help_of({"bench"}, {.environment = {"COLUMNS=wide"}}), text);
}

TEST(Help, SaysWhatAnOptionTakes) {
  const std::string bench = help_of({"bench"});
  EXPECT_TRUE(contains(bench, "Usage: trireme bench [OPTIONS]\n"));
  EXPECT_TRUE(contains(bench, "--model TEXT"));
  EXPECT_TRUE(contains(bench, "(default: resnet50)"));
  EXPECT_TRUE(contains(bench, "--batch-size N"));
  EXPECT_TRUE(contains(bench, "--bind, --no-bind"));
  EXPECT_EQ(bench.find("--use-fp16"), std::string::npos) << "it is refused when it is given";
  EXPECT_TRUE(contains(help_of({"data", "convert"}), "Usage: trireme data convert [OPTIONS] FROM\n"));
  EXPECT_TRUE(contains(help_of({"data", "convert"}), "(required)"));
  EXPECT_TRUE(contains(help_of({"launch"}), "Usage: trireme launch [OPTIONS] [COMMAND...]\n"));
  const std::string all = help_of({});
  EXPECT_TRUE(contains(all, "Usage: trireme [OPTIONS] COMMAND\n"));
  EXPECT_EQ(all.find("launch-task"), std::string::npos) << "launches start it";
}

TEST(Help, IsACommandToo) {
  for (const Words& command : kCommands) {
    Words words{"help"};
    words.insert(words.end(), command.begin(), command.end());
    const CommandResult result = run_trireme(words);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.out, help_of(command));
  }
  expect_refused({"help", "benhc"}, {"unknown command 'benhc'; did you mean 'bench'?"});
  expect_refused({"help", "data", "mkae"}, {"unknown command 'mkae' of data; did you mean 'make'?"});
  expect_refused({"help", "launch-task"}, {"unknown command 'launch-task'"});
}

TEST(Help, IsShownWithoutACommand) {
  const CommandResult result = run_trireme({});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.err, help_of({}));
}

TEST(Version, HasAShortAndALongName) {
  const CommandResult version = run_trireme({"--version"});
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_EQ(version.out.rfind("trireme ", 0), 0U) << version.out;
  EXPECT_EQ(run_trireme({"-V"}).out, version.out);
}

}  // namespace
}  // namespace trireme::testkit
