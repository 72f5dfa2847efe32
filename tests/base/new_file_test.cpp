#include "trireme/base/new_file.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "tests/support/temporary_folder.hpp"

namespace trireme {
namespace {

namespace fs = std::filesystem;

TEST(NewFile, IsNeverPutInThePlaceOfADeviceOrAFolder) {
  const testkit::TemporaryFolder folder;
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  fs::create_symlink("pipe", folder / "link");
  fs::create_directory(folder / "folder");
  for (const std::string& path : {folder / "pipe", folder / "link", folder / "folder", std::string("/dev/null")}) {
    try {
      NewFile(path).commit();
      ADD_FAILURE() << path << " was written";
    } catch (const WriteError& error) {
      EXPECT_NE(std::string(error.what()).find(path), std::string::npos) << error.what();
    }
  }
  EXPECT_TRUE(fs::is_fifo(folder / "pipe"));
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()), 3) << "nothing is left";
}

}  // namespace
}  // namespace trireme
