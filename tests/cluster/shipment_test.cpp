#include "trireme/cluster/shipment.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/support/temporary_folder.hpp"

namespace trireme::cluster {
namespace {

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
  std::ofstream(folder / "archive", std::ios::binary) << shipment.archive;
  std::filesystem::create_directory(folder / "it s");
  const std::string there = "cd '" + (folder / "it s") + "' && ";
  ASSERT_EQ(std::system((there + "tar -xof ../archive").c_str()), 0);
  // Here the program is this test, and finds its libraries there.
  const std::string listing = "LD_DEBUG=libs ./trireme --gtest_list_tests >../said 2>&1 && ";
  EXPECT_EQ(std::system((there + listing + "grep -q Shipment ../said").c_str()), 0);
  EXPECT_EQ(std::system((there + "grep -q \"calling init: $PWD/lib/libfmt\" ../said").c_str()), 0);
}

}  // namespace
}  // namespace trireme::cluster
