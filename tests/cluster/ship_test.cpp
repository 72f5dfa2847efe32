// Shipments to this machine: what runs is what a host runs, reached without ssh.
#include "trireme/cluster/ship.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/support/temporary_folder.hpp"

namespace trireme::cluster {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;
using Words = std::vector<std::string>;

// The script is what runs before the command, as a shell has its own at its start.
HostReach reach_after(const std::string& script) {
  return {.name = "ssh",
          .command =
              [script](const std::string&, const Words& command) {
                Words words{"sh", "-c", script + "\nexec \"$@\"", "sh"};
                words.insert(words.end(), command.begin(), command.end());
                return words;
              },
          .failure = [](int, const std::string&) { return ""; }};
}

Shipment shipment(std::size_t bytes = 100'000) {
  return {.name = "0123456789abcdef",
          .archive = packed("filling", std::string(bytes, 'x'), false) + packed("trireme", "#!/bin/sh\n", true),
          .libraries = 0};
}

std::string content_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(Shipment, TheCLibraryAndDriversStayWhereTheyAre) {
  for (const char* library : {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2", "libpthread.so.0", "libnss_files.so.2",
                              "libibverbs.so.1", "libmlx5.so.1", "libcuda.so.1"}) {
    EXPECT_TRUE(belongs_to_the_system(library)) << library;
  }
  for (const char* library : {"libstdc++.so.6", "libgcc_s.so.1", "libcares.so.2", "libmpi.so.40", "libcrypto.so.3",
                              "libcudart.so.12", "libutf8.so.1"}) {
    EXPECT_FALSE(belongs_to_the_system(library)) << library;
  }
}

TEST(Shipment, WhatIsUnpackedRunsWithItsOwnLibraries) {
  const Shipment shipment = pack_this_program();
  EXPECT_EQ(shipment.name.size(), 16U);
  EXPECT_EQ(shipment.name, pack_this_program().name) << "the same program, the same name";
  const testkit::TemporaryFolder folder;
  const ShipResult result = ship(shipment, {"a"}, reach_after(""), folder / "it s").front();
  ASSERT_EQ(result.problem, "");
  const std::string there = "cd '" + fs::path(result.program).parent_path().string() + "' && ";
  // Here the program is this test, and finds its libraries there.
  const std::string listing = "LD_DEBUG=libs ./trireme --gtest_list_tests >../said 2>&1 && ";
  EXPECT_EQ(std::system((there + listing + "grep -q Shipment ../said").c_str()), 0);
  EXPECT_EQ(std::system((there + "grep -q \"calling init: $PWD/lib/libfmt\" ../said").c_str()), 0);
}

TEST(Ship, FilesArriveAsTheyWerePacked) {
  const std::string long_name = "lib/" + std::string(200, 'l') + ".so", block(512, '\0'), lines = "a\n\n b\n";
  Shipment shipment{.name = "0123456789abcdef", .archive = packed(long_name, block, false), .libraries = 0};
  shipment.archive += packed("lib/ucx/some lines", lines, false) + packed("empty", "", false);
  shipment.archive += packed("trireme", "#!/bin/sh\n", true);
  const testkit::TemporaryFolder folder;
  const ShipResult result = ship(shipment, {"a"}, reach_after(""), folder.path()).front();
  EXPECT_EQ(result.problem, "");
  const fs::path there = fs::path(result.program).parent_path();
  EXPECT_EQ(content_of(there / long_name), block);
  EXPECT_EQ(content_of(there / "lib/ucx/some lines"), lines);
  EXPECT_EQ(content_of(there / "trireme"), "#!/bin/sh\n");
  EXPECT_EQ(fs::file_size(there / "empty"), 0U);
  EXPECT_EQ(fs::status(there / "empty").permissions() & fs::perms::owner_exec, fs::perms::none);
}

TEST(Ship, AnArchiveThatEndsEarlyLeavesNothing) {
  const testkit::TemporaryFolder folder;
  Shipment cut = shipment();
  for (const std::size_t missing : {1, 5, 100, 1000}) {
    cut.archive.resize(shipment().archive.size() - missing);
    EXPECT_EQ(ship(cut, {"a"}, reach_after(""), folder.path()).front().problem,
              "cannot copy trireme to it: the connection ended before everything arrived");
    EXPECT_TRUE(fs::is_empty(folder.path()));
  }
}

TEST(Ship, ArrivesOnceBehindAShellThatTalks) {
  const testkit::TemporaryFolder folder;
  const HostReach reach = reach_after("echo; echo send; echo 'there /nowhere'; echo -n Welcome >&1");
  const ShipResult first = ship(shipment(), {"a"}, reach, folder / "it s").front();
  EXPECT_EQ(first.problem, "");
  EXPECT_FALSE(first.was_there);
  EXPECT_EQ(first.program, folder / "it s/0123456789abcdef/trireme");
  EXPECT_EQ(fs::file_size(folder / "it s/0123456789abcdef/filling"), 100'000U);
  EXPECT_TRUE(ship(shipment(), {"a"}, reach, folder / "it s").front().was_there);
}

TEST(Ship, AnyLoginShellUnderstandsTheCommand) {
  Words sent;
  HostReach reach = reach_after("");
  const auto command = reach.command;
  reach.command = [&](const std::string& host, const Words& words) {
    sent = words;
    return command(host, words);
  };
  const testkit::TemporaryFolder folder;
  EXPECT_EQ(ship(shipment(), {"a"}, reach, folder.path()).front().problem, "");
  ASSERT_FALSE(sent.empty());
  for (const std::string& word : sent) {
    EXPECT_EQ(word.find_first_of("\n!"), std::string::npos) << "csh makes something else of " << word;
    EXPECT_LT(word.size(), 1000U) << "more than some take";
  }
}

TEST(Ship, AHostThatDoesNotAnswerIsGivenUpThoughItsShellTalks) {
  const testkit::TemporaryFolder folder;
  const ShipTimeouts timeouts{.answer = 300ms, .progress = 60s};
  for (const char* script : {"exec sleep 60", "while :; do echo still here; sleep 0.1; done"}) {
    const ShipResult result = ship(shipment(), {"a"}, reach_after(script), folder.path(), timeouts).front();
    EXPECT_TRUE(result.problem.starts_with("does not answer within 0.3 s")) << result.problem;
  }
  EXPECT_EQ(ship(shipment(), {"a"}, reach_after("exec yes"), folder.path()).front().problem,
            "its shell prints more than 64 KB at the start");
}

TEST(Ship, ACopyThatDoesNotMoveIsGivenUp) {
  const testkit::TemporaryFolder folder;
  const std::string greets_and_stops =
      "echo '-- trireme begins --'; echo send; echo disk is slow >&2; head -c 1000000 >/dev/null; exec sleep 60";
  const ShipResult result =
      ship(shipment(3'000'000), {"a"}, reach_after(greets_and_stops), folder.path(), {.answer = 60s, .progress = 300ms})
          .front();
  EXPECT_EQ(result.problem, "the copy to it has made no progress for 0.3 s: disk is slow");
}

TEST(Ship, AFolderThatOthersCanChangeIsRefused) {
  const testkit::TemporaryFolder folder;
  const HostReach reach = reach_after("");
  const auto problem = [&](const std::string& path) { return ship(shipment(), {"a"}, reach, path).front().problem; };
  const auto make = [&](const std::string& path, unsigned mode) {
    fs::create_directory(path);
    fs::permissions(path, static_cast<fs::perms>(mode));
    return path;
  };
  const std::string open = make(folder / "open", 0777), sticky = make(folder / "sticky", 01777);
  const std::string is_not = " is not yours alone: ";
  EXPECT_NE(problem(open).find(open + is_not), std::string::npos) << problem(open);
  EXPECT_NE(problem(open + "/mine").find(open + is_not), std::string::npos) << "whose name can be another's next";
  EXPECT_NE(problem(sticky).find(sticky + is_not), std::string::npos);
  EXPECT_EQ(problem(sticky + "/mine"), "") << "which nobody can take away there";
  EXPECT_EQ(fs::status(sticky + "/mine").permissions(), fs::perms::owner_all);

  fs::create_directory_symlink(make(folder / "private", 0700), folder / "link");
  EXPECT_EQ(problem(folder / "link/way"), "") << "a link of our own";
  fs::create_directory_symlink(folder / "open", folder / "to open");
  EXPECT_NE(problem(folder / "to open/x").find(open + is_not), std::string::npos) << problem(folder / "to open/x");
  if (geteuid() != 0) return;
  const std::string planted = sticky + "/planted";
  fs::create_directory_symlink(folder / "private", planted);
  ASSERT_EQ(lchown(planted.c_str(), 65534, 65534), 0);
  EXPECT_NE(problem(planted).find(planted + is_not), std::string::npos) << problem(planted);
  EXPECT_NE(problem(planted + "/x").find(planted + is_not), std::string::npos) << problem(planted + "/x");
  EXPECT_FALSE(fs::exists(folder / "private/x")) << "it was followed";
  const std::string others = make(sticky + "/others", 0755);
  ASSERT_EQ(chown(others.c_str(), 65534, 65534), 0);
  EXPECT_NE(problem(others).find(others + is_not), std::string::npos) << problem(others);
}

TEST(Ship, AHostThatRefusesSaysWhy) {
  const ShipResult result = ship(shipment(), {"a"}, reach_after(""), "/proc/nowhere").front();
  EXPECT_TRUE(result.problem.starts_with("cannot copy trireme to it: ")) << result.problem;
  EXPECT_NE(result.problem.find("/proc/nowhere"), std::string::npos) << result.problem;
}

}  // namespace
}  // namespace trireme::cluster
