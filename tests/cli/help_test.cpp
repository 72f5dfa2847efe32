// `--help`, `trireme help` and `--version`, and what a terminal shows.
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <sstream>

#include "tests/cli/refusal.hpp"
#include "tests/support/temporary_folder.hpp"

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

// What `trireme` prints on a terminal of this width.
std::string on_terminal(unsigned short columns, const Words& words, const char* no_color = "") {
  int terminal = -1;
  const winsize size{.ws_row = 24, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
  const pid_t child = forkpty(&terminal, nullptr, nullptr, &size);
  if (child == 0) {
    unsetenv("COLUMNS");
    setenv("TERM", "xterm", 1);
    setenv("NO_COLOR", no_color, 1);
    std::vector<char*> arguments{const_cast<char*>(TRIREME_BINARY)};
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    execv(TRIREME_BINARY, arguments.data());
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
  EXPECT_TRUE(WIFEXITED(status)) << text;
  return text;
}

std::string help_on_terminal(unsigned short columns) { return on_terminal(columns, {"bench", "--help"}); }

TEST(Errors, HaveColorsOnlyWhereTheyAreWanted) {
  const std::string color = "\x1b[1;31merror:\x1b[0m ";
  EXPECT_TRUE(contains(on_terminal(80, {"bnech"}), color));
  EXPECT_FALSE(contains(on_terminal(80, {"bnech"}, "1"), color)) << "NO_COLOR";
  EXPECT_FALSE(contains(run_trireme({"bnech"}).err, color)) << "no terminal";
}

TEST(Progress, FitsTheTerminalAndHasTheTimeLeft) {
  const TemporaryFolder folder;
  const auto progress = [&](unsigned short columns) {
    const std::string out = folder / std::to_string(columns);
    return on_terminal(columns, {"data", "make", "--samples", "2000", "--out", out});
  };
  EXPECT_TRUE(contains(progress(80), " %, 1s left\x1b[K"));
  std::istringstream parts(progress(16));
  for (std::string part; std::getline(parts, part, '\r');) {
    if (part.starts_with("writing")) {
      EXPECT_LT(part.find("\x1b[K"), 16U) << part;
    }
  }
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
                                   {"completion"},
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

// man itself need not be here: its formatter warns of what it does not understand.
TEST(ManPages, HaveEveryCommandAndOption) {
  const TemporaryFolder folder;
  ASSERT_EQ(run_trireme({"help", "--man-pages", folder / "man1"}).exit_code, 0);
  for (const Words& command : kCommands) {
    std::string name = "trireme";
    for (const std::string& word : command) name += "-" + word;
    const std::string file_name = folder / ("man1/" + name + ".1");
    std::ifstream file(file_name);
    const std::string page{std::istreambuf_iterator<char>(file), {}};
    EXPECT_TRUE(contains(page, ".SH NAME\n")) << name;
    std::istringstream help(help_of(command));
    for (std::string line; std::getline(help, line);) {
      const std::size_t at = line.find("--");
      if (at == std::string::npos || at > 6) continue;  // in the text of another option
      std::string option = line.substr(at, line.find_first_of(" ,", at) - at);
      for (std::size_t dash = 0; (dash = option.find('-', dash)) != std::string::npos; dash += 2)
        option.insert(dash, "\\");
      EXPECT_TRUE(contains(page, option)) << name << " " << option;
    }
    if (run_command({"/bin/sh", "-c", "command -v groff"}).exit_code != 0) continue;
    const CommandResult formatted =
        run_command({"/bin/sh", "-c", "groff -man -Tutf8 -ww \"$0\" 2>&1 >/dev/null", file_name});
    EXPECT_EQ(formatted.out, "") << name;
  }
  const CommandResult refused = run_trireme({"help", "--man-pages", "/proc/man"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_TRUE(contains(refused.err, "/proc/man"));
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
  EXPECT_TRUE(contains(version.out, "hwloc ")) << "libraries: " << version.out;
  EXPECT_EQ(run_trireme({"-V"}).out, version.out);
}

}  // namespace
}  // namespace trireme::testkit
