// What a build without an optional library says to commands that need it. Skipped in builds that have it.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/cli/refusal.hpp"
#include "tests/support/libraries.hpp"
#include "tests/support/temporary_folder.hpp"

namespace trireme::testkit {
namespace {

// Exit code 3, and a line that names the package to install.
void expect_missing(const std::string& package, const std::vector<std::string>& arguments,
                    const CommandOptions& options = {}) {
  const CommandResult result = run_trireme(arguments, options);
  EXPECT_EQ(result.exit_code, 3) << result.out << result.err;
  EXPECT_TRUE(contains(result.err, "trireme: error: "));
  EXPECT_TRUE(contains(result.err, package));
}

TEST(MissingLibrary, OneDnn) {
  if (has_library("oneDNN")) GTEST_SKIP();
  expect_missing("this build has: reference", {"bench", "--model", "lenet", "--backend", "onednn"});
}

TEST(MissingLibrary, Mpi) {
  if (has_library("MPI")) GTEST_SKIP();
  expect_missing("libopenmpi-dev", {"bench", "--model", "lenet"},
                 {.environment = {"OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=2"}});
}

TEST(MissingLibrary, Grpc) {
  if (has_library("gRPC")) GTEST_SKIP();
  expect_missing("libgrpc++-dev",
                 {"bench", "--model", "lenet", "--worker-hosts", "127.0.0.1:2201,127.0.0.1:2202", "--job-name",
                  "worker", "--task-index", "0"},
                 {.environment = {"TRIREME_JOB_SECRET=0123456789abcdef0123456789abcdef"}});
}

TEST(MissingLibrary, Protobuf) {
  if (has_library("protobuf")) GTEST_SKIP();
  const TemporaryFolder folder;
  expect_missing("libprotobuf-dev", {"data", "make", "--format", "tfrecord", "--out", folder / "a"});
  EXPECT_FALSE(std::filesystem::exists(folder / "a"));
}

TEST(MissingLibrary, Jpeg) {
  if (has_library("libjpeg-turbo")) GTEST_SKIP();
  const TemporaryFolder folder;
  expect_missing("libjpeg-dev", {"data", "make", "--format", "folder", "--out", folder / "a"});
  EXPECT_FALSE(std::filesystem::exists(folder / "a"));
}

TEST(MissingLibrary, Zlib) {
  if (has_library("zlib")) GTEST_SKIP();
  const TemporaryFolder folder;
  for (const char* name : {"train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz"}) {
    std::ofstream(folder / name, std::ios::binary) << "\x1f\x8b";
  }
  expect_missing("zlib1g-dev", {"data", "inspect", folder.path()});
}

}  // namespace
}  // namespace trireme::testkit
