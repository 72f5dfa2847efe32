#include "trireme/cluster/console.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <string>

#include "tests/support/temporary_folder.hpp"
#include "trireme/base/unique_fd.hpp"
#include "trireme/cluster/child_process.hpp"

namespace trireme::cluster {
namespace {

std::vector<std::string> lines_from(const std::vector<std::string>& pieces) {
  LineBuffer buffer;
  std::vector<std::string> lines;
  const auto keep = [&](const std::string& line) { lines.push_back(line); };
  for (const std::string& piece : pieces) buffer.append(piece, keep);
  buffer.finish(keep);
  return lines;
}

using Lines = std::vector<std::string>;

TEST(LineBuffer, CutsAtEndsOfLinesOnly) {
  EXPECT_EQ(lines_from({"one\ntw", "o\n\nthree"}), (Lines{"one", "two", "", "three"}));
  EXPECT_EQ(lines_from({"dos\r\nlines\r", "\n"}), (Lines{"dos", "lines"}));
  EXPECT_EQ(lines_from({}), Lines{});
}

TEST(LineBuffer, OfABarTheLastStateCounts) {
  EXPECT_EQ(lines_from({"\r10 %\x1b[K\r20 %\x1b[K", "\r30 %\x1b[K\nafter"}), (Lines{"30 %", "after"}));
  EXPECT_EQ(lines_from({"\r10 %\x1b[K", "\r\x1b[K"}), Lines{});  // drawn and erased
}

TEST(LineBuffer, ALineWithoutEndIsBounded) {
  const Lines lines = lines_from({std::string(3U << 20U, 'x')});
  EXPECT_EQ(lines.size(), 3U);
}

JobDescription two_workers() { return {{Task{.index = 0}, Task{.index = 1}}}; }

// What a terminal of one column of lines shows after these characters.
Lines screen(const std::string& text) {
  Lines lines{""};
  std::size_t column = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text.compare(i, 3, "\x1b[K") == 0) {
      lines.back().resize(std::min(column, lines.back().size()));
      i += 2;
    } else if (text[i] == '\r') {
      column = 0;
    } else if (text[i] == '\n') {
      lines.emplace_back();
      column = 0;
    } else {
      lines.back().resize(std::max(lines.back().size(), column + 1), ' ');
      lines.back()[column++] = text[i];
    }
  }
  return lines;
}

class Terminal {
 public:
  Terminal() : master_(posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK)) {
    EXPECT_EQ(grantpt(master_.get()) + unlockpt(master_.get()), 0);
    slave_.reset(open(ptsname(master_.get()), O_RDWR | O_NOCTTY));
  }
  int descriptor() const { return slave_.get(); }
  Lines shown() {
    std::array<char, 4096> chunk{};
    for (ssize_t count = 0; (count = read(master_.get(), chunk.data(), chunk.size())) > 0;) {
      text_.append(chunk.data(), count);
    }
    return screen(text_);
  }

 private:
  UniqueFd master_, slave_;
  std::string text_;
};

TEST(Console, OnATerminalTheBarStaysBelowTheLines) {
  Terminal terminal;
  const JobDescription job = two_workers();
  Console console(job, {.out = terminal.descriptor(), .err = terminal.descriptor(), .output_folder = ""});
  ASSERT_TRUE(console.shows_bar());
  console.add_output(0, 2, "\r[##..] 50 %\x1b[K");
  console.flush();
  EXPECT_EQ(terminal.shown(), (Lines{"[##..] 50 %"}));
  console.add_output(1, 1, "of another rank\nunfinished");
  console.add_output(0, 1, "step 1\n");
  console.flush();
  EXPECT_EQ(terminal.shown(), (Lines{"[1] of another rank", "[0] step 1", "[##..] 50 %"}));
  console.add_output(0, 2, "\r[#] 1\x1b[K");
  console.say("the launcher");
  console.flush();
  EXPECT_EQ(terminal.shown(), (Lines{"[1] of another rank", "[0] step 1", "the launcher", "[#] 1"}));
  console.add_output(0, 2, "\r\x1b[K");
  console.finish(0);
  console.finish(1);
  console.flush();
  EXPECT_EQ(terminal.shown(), (Lines{"[1] of another rank", "[0] step 1", "the launcher", "[1] unfinished", ""}));
}

TEST(Console, DoesNotWaitForAReaderAndNoticesItsEnd) {
  PipeEnds pipe = make_pipe();
  const JobDescription job = two_workers();
  Console console(job, {.out = pipe.write.get(), .err = pipe.write.get(), .output_folder = ""});
  const std::string line = std::string(999, 'x') + "\n";
  for (int i = 0; i < 2000; ++i) {
    console.add_output(0, 1, line);
    console.flush();
  }
  EXPECT_TRUE(console.is_full());
  EXPECT_EQ(console.descriptor(), pipe.write.get());
  EXPECT_FALSE(console.is_broken());
  signal(SIGPIPE, SIG_IGN);
  pipe.read.reset();
  console.flush();
  signal(SIGPIPE, SIG_DFL);
  EXPECT_TRUE(console.is_broken());
  EXPECT_EQ(console.descriptor(), -1);
}

TEST(Console, AFileThatIsFullIsSaidOnce) {
  const testkit::TemporaryFolder folder;
  std::filesystem::create_symlink("/dev/full", folder / "rank-1.out");
  PipeEnds pipe = make_pipe();
  const JobDescription job = two_workers();
  Console console(job, {.out = pipe.write.get(), .err = pipe.write.get(), .output_folder = folder.path()});
  for (int i = 0; i < 2; ++i) {
    console.add_output(0, 1, "zero\n");
    console.add_output(1, 1, "one\n");
  }
  console.flush();
  std::array<char, 4096> chunk{};
  const ssize_t count = read(pipe.read.get(), chunk.data(), chunk.size());
  EXPECT_EQ(std::string(chunk.data(), std::max<ssize_t>(count, 0)),
            "[0] zero\ntrireme: warning: --output-dir " + folder.path().string() +
                ": no longer writing stdout of worker 1: No space left on device\n[1] one\n[0] zero\n[1] one\n");
  EXPECT_EQ(std::filesystem::file_size(folder / "rank-0.out"), 10U);
}

}  // namespace
}  // namespace trireme::cluster
