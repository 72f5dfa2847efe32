#include "trireme/cluster/slurm.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "trireme/cluster/child_process.hpp"

namespace trireme::cluster {
namespace {

TEST(Slurm, CountsAreReadAsSlurmWritesThem) {
  EXPECT_EQ(parse_slurm_counts("2(x3),1"), (std::vector{2, 2, 2, 1}));
  EXPECT_EQ(parse_slurm_counts("4"), std::vector{4});
  for (const char* text : {"", "2(x", "2(x3)1", "x", "-1", "2,,1"})
    EXPECT_TRUE(parse_slurm_counts(text).empty()) << text;
}

// Options of srun come before the command, and variables of this machine do not travel.
TEST(Slurm, ACommandIsAStepOnItsNode) {
  if (find_program("srun").empty()) GTEST_SKIP() << "no srun here";
  const auto words = srun_reach().command("n7", {"trireme", "launch-probe"});
  EXPECT_NE(std::find(words.begin(), words.end(), "--nodelist=n7"), words.end());
  EXPECT_EQ(std::vector<std::string>(words.end() - 2, words.end()),
            (std::vector<std::string>{"trireme", "launch-probe"}));
  const auto env = std::find(words.begin(), words.end(), "env");
  EXPECT_NE(std::find(env, words.end(), "TRIREME_LAUNCH"), words.end());
}

}  // namespace
}  // namespace trireme::cluster
