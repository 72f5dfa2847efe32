#include "trireme/cluster/tar_archive.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/support/temporary_folder.hpp"
#include "trireme/base/error.hpp"

namespace trireme::cluster {
namespace {

namespace fs = std::filesystem;

std::string content_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(TarArchive, TarUnpacksWhatWasAdded) {
  const std::string long_name = "lib/" + std::string(92, 'l') + ".so";
  const std::string large(100'000, 'x'), block(512, '\0');
  TarArchive archive;
  archive.add("bin/program", "#!/bin/sh\n", true);
  archive.add(long_name, large, false);
  archive.add("lib/ucx/block", block, false);
  archive.add("empty", "", false);
  const testkit::TemporaryFolder folder;
  std::ofstream(folder / "archive", std::ios::binary) << archive.bytes();
  fs::create_directory(folder / "out");
  ASSERT_EQ(
      std::system(("tar -xof " + (folder / "archive") + " -C " + (folder / "out") + " 2>" + (folder / "said")).c_str()),
      0);
  EXPECT_EQ(content_of(folder / "said"), "") << "tar has nothing to complain about";
  EXPECT_EQ(content_of(folder / "out/bin/program"), "#!/bin/sh\n");
  EXPECT_EQ(content_of((folder / "out/") + long_name), large);
  EXPECT_EQ(content_of(folder / "out/lib/ucx/block"), block);
  EXPECT_TRUE(fs::exists(folder / "out/empty"));
  const auto permissions = [&](const char* name) { return fs::status((folder / "out/") + name).permissions(); };
  EXPECT_NE(permissions("bin/program") & fs::perms::owner_exec, fs::perms::none);
  EXPECT_EQ(permissions("empty") & fs::perms::owner_exec, fs::perms::none);
}

TEST(TarArchive, TheSameFilesMakeTheSameArchive) {
  TarArchive one, other, different;
  one.add("a", "content", false);
  other.add("a", "content", false);
  different.add("a", "content", true);
  EXPECT_EQ(one.bytes(), other.bytes());
  EXPECT_NE(one.bytes(), different.bytes());
}

TEST(TarArchive, ANameThatDoesNotFitIsRefused) {
  TarArchive archive;
  EXPECT_THROW(archive.add(std::string(101, 'n'), "", false), Error);
  EXPECT_THROW(archive.add("", "", false), Error);
}

}  // namespace
}  // namespace trireme::cluster
