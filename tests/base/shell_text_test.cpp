#include "trireme/base/shell_text.hpp"

#include <gtest/gtest.h>

#include "trireme/cluster/child_process.hpp"

namespace trireme {
namespace {

TEST(ShellText, AShellTakesEveryWordAsItWas) {
  const std::vector<std::string> words{"plain", "", "two words", "it's", "$HOME `x` \\ \"q\" *", "a\nb", "--x=1"};
  cluster::PipeEnds pipe = cluster::make_pipe();
  cluster::ChildProcess shell(
      {.command = {"/bin/sh", "-c", "printf '%s|' " + shell_line(words)}, .out = pipe.write.get()});
  pipe.write.reset();
  EXPECT_TRUE(shell.wait().is_success());
  std::string said(4096, '\0');
  said.resize(read(pipe.read.get(), said.data(), said.size()));
  std::string expected;
  for (const std::string& word : words) expected += word + "|";
  EXPECT_EQ(said, expected);
}

}  // namespace
}  // namespace trireme
