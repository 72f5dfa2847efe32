#include "trireme/cluster/host_reach.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <cstdlib>

#include "trireme/base/error.hpp"
#include "trireme/base/shell_text.hpp"

namespace trireme::cluster {
namespace {

// This machine, as if it had to be reached.
HostReach here() {
  return {.name = "here",
          .command = [](const std::string&, const std::vector<std::string>& words) { return words; },
          .failure = [](int code, const std::string& words) { return code == 255 ? "not reached: " + words : ""; }};
}

std::string output_of(const std::string& prefix, const std::vector<std::string>& command) {
  FILE* pipe = popen(shell_line(inside(here(), prefix).command("a", command)).c_str(), "r");
  std::array<char, 4096> said{};
  const std::size_t count = fread(said.data(), 1, said.size(), pipe);
  EXPECT_EQ(pclose(pipe), 0) << prefix;
  return {said.data(), count};
}

std::string refusal(const std::string& prefix) {
  try {
    inside(here(), prefix);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::bad_input);
    return error.what();
  }
  return "none";
}

TEST(Container, ThePrefixIsForTheShellOfTheHost) {
  const std::vector<std::string> show{"sh", "-c", "echo \"$FOO\" $*", "sh", "it's", "$HOME"};
  EXPECT_EQ(output_of("env FOO=bar", show), "bar it's $HOME\n");
  EXPECT_EQ(output_of("env 'FOO=two words' nice", show), "two words it's $HOME\n");
  EXPECT_EQ(output_of("env FOO=\"a\\\"b\"", show), "a\"b it's $HOME\n");
  EXPECT_EQ(output_of("env FOO=$HOME", show), std::string(std::getenv("HOME")) + " it's $HOME\n");
  EXPECT_EQ(output_of("sh -c 'FOO=inner; export FOO; exec \"$@\"' sh", show), "inner it's $HOME\n");
  EXPECT_EQ(output_of("env FOO=a\\;b#c", show), "a;b#c it's $HOME\n");
}

TEST(Container, WhereTheHostWasReachedIsKnownInside) {
  setenv("SSH_CONNECTION", "10.0.0.1 5000 10.0.0.2 22", 1);
  unsetenv("SLURM_CPUS_ON_NODE");
  const std::vector<std::string> show{"sh", "-c", "echo $SSH_CONNECTION ${SLURM_CPUS_ON_NODE-none}"};
  EXPECT_EQ(output_of("env -i /usr/bin/env PATH=/usr/bin:/bin", show), "10.0.0.1 5000 10.0.0.2 22 none\n");
  unsetenv("SSH_CONNECTION");
  EXPECT_EQ(output_of("nice", {"sh", "-c", "echo ${SSH_CONNECTION-none}"}), "none\n");
}

TEST(Container, WhatIsNotOneCommandIsRefused) {
  EXPECT_NE(refusal("podman run 'image").find("the quote ' is not closed"), std::string::npos);
  EXPECT_NE(refusal("podman run \"image\\\"").find("the quote \" is not closed"), std::string::npos);
  EXPECT_NE(refusal("cd /x; podman run image").find("';' at position 6"), std::string::npos);
  for (const char* prefix : {"a | b", "a && b", "a > b", "a < b", "a\nb", "a # b", "a \\", "", "  "}) {
    EXPECT_EQ(refusal(prefix).find("--exec"), 0U) << prefix;
  }
}

TEST(Container, ItsOwnFailuresAreToldFromThoseOfTheWayThere) {
  const HostReach reach = inside(here(), "apptainer exec image.sif");
  EXPECT_EQ(reach.failure(255, "Connection refused"), "not reached: Connection refused");
  EXPECT_EQ(reach.failure(255, "FATAL: no such image").find("the container of --exec"), 0U);
  EXPECT_EQ(reach.failure(125, "Error: no such image").find("the container of --exec"), 0U);
  EXPECT_EQ(reach.failure(127, "podman: not found").find("the command of --exec"), 0U);
  EXPECT_EQ(reach.failure(2, "bad input"), "");
}

}  // namespace
}  // namespace trireme::cluster
