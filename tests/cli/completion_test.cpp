// What a shell is offered, asked as the scripts ask and in a shell.
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "tests/cli/refusal.hpp"

namespace trireme::testkit {
namespace {

using Words = std::vector<std::string>;

Words lines_of(const std::string& text) {
  std::istringstream stream(text);
  Words lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

Words offered(const Words& words) {
  Words command{"complete", "--"};
  command.insert(command.end(), words.begin(), words.end());
  const CommandResult result = run_trireme(command);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return lines_of(result.out);
}

bool has(const Words& words, const std::string& word) { return std::ranges::find(words, word) != words.end(); }

TEST(Completion, OffersCommands) {
  EXPECT_EQ(offered({"be"}), Words{"bench"});
  const Words all = offered({""});
  EXPECT_TRUE(has(all, "train") && has(all, "launch") && has(all, "completion"));
  EXPECT_FALSE(has(all, "launch-task") || has(all, "complete"));
  EXPECT_EQ(offered({"data", "ma"}), Words{"make"});
  EXPECT_EQ(offered({"help", "ben"}), Words{"bench"});
}

TEST(Completion, OffersOptionsOfTheCommand) {
  EXPECT_EQ(offered({"bench", "--batch-s"}), (Words{"--batch-size", "--batch-split"}));
  EXPECT_TRUE(has(offered({"data", "make", "--"}), "--format"));
  EXPECT_FALSE(has(offered({"report", "--"}), "--model"));
  EXPECT_TRUE(has(offered({"launch", "--"}), "--workers"));
  EXPECT_FALSE(has(offered({"launch", "--"}), "--model"));
  EXPECT_EQ(offered({"launch", "--workers", "2", "--", "bench", "--recomp"}), Words{"--recompute"});
}

TEST(Completion, OffersValues) {
  EXPECT_EQ(offered({"bench", "--precision", "b"}), Words{"bf16"});
  EXPECT_EQ(offered({"bench", "--precision=b"}), Words{"--precision=bf16"}) << "zsh";
  EXPECT_EQ(offered({"bench", "--precision", "=", "b"}), Words{"bf16"}) << "bash";
  EXPECT_EQ(offered({"bench", "--precision", "="}).size(), 4U);
  EXPECT_TRUE(has(offered({"train", "--model", "resnet"}), "resnet50"));
  EXPECT_EQ(offered({"launch", "--starter", ""}), (Words{"auto", "mpi", "process"}));
  EXPECT_EQ(offered({"net", "--protocol", "grpc+"}), (Words{"grpc+ucx", "grpc+mpi"}));
  EXPECT_EQ(offered({"report", "--format", "s"}), Words{"svg"});
  EXPECT_EQ(offered({"sweep", "weak"}), Words{"weak-scaling"});
  EXPECT_TRUE(offered({"bench", "--record", "re"}).empty()) << "a file: the shell knows them";
  EXPECT_TRUE(offered({"bench", "--model", "bench", "--forward-onl"}).size() == 1) << "a value like a command";
}

TEST(Completion, WorksInBash) {
  const CommandResult result =
      run_command({"/bin/bash", "-c",
                   "source <(\"$0\" completion bash); COMP_WORDS=(\"$0\" bench --model resnet11); COMP_CWORD=3; "
                   "_trireme \"$0\"; printf '%s\\n' \"${COMPREPLY[@]}\"",
                   TRIREME_BINARY});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "resnet110\n");
}

TEST(Completion, WorksInZsh) {
  if (run_command({"/bin/sh", "-c", "command -v zsh"}).exit_code != 0) GTEST_SKIP() << "needs zsh";
  const CommandResult result = run_command(
      {"/bin/sh", "-c",
       "\"$0\" completion zsh > \"$TMPDIR/_trireme\"; zsh -f -c 'compadd() { shift; print -l -- $@; }; "
       "compdef() { }; source $TMPDIR/_trireme; words=($0 bench --model resnet11); CURRENT=4; _trireme' \"$0\"; "
       "rm \"$TMPDIR/_trireme\"",
       TRIREME_BINARY},
      {.environment = {"TMPDIR=/tmp"}});
  EXPECT_EQ(result.out, "resnet110\n") << result.err;
}

TEST(Completion, KnowsItsShells) {
  expect_refused({"completion", "tcsh"}, {"SHELL tcsh", "bash, zsh"});
  expect_refused({"completion"}, {"missing"});
}

}  // namespace
}  // namespace trireme::testkit
