// `trireme net` on real processes, over each transport of this build, and what `trireme bench` makes of its figures.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/distributed/launched_job.hpp"
#include "tests/distributed/running_command.hpp"
#include "tests/support/temporary_folder.hpp"
#include "trireme/comm/world.hpp"

namespace trireme::testkit {
namespace {

using namespace std::chrono_literals;
using Words = std::vector<std::string>;

struct Protocol {
  const char* name;
  const char* library;                  // as transport_versions() has it
  std::vector<const char*> transports;  // that a job has by it
};

bool is_built(const Protocol& protocol) {
  const auto versions = comm::transport_versions();
  return std::any_of(versions.begin(), versions.end(),
                     [&](const auto& item) { return item.first == protocol.library; });
}

nlohmann::json read(const std::string& path) { return nlohmann::json::parse(std::ifstream(path)); }

Words launch_of(const Words& command) {
  Words words{"--workers", "2", "--oversubscribe", "--"};
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

class Net : public ::testing::TestWithParam<Protocol> {
 protected:
  void SetUp() override {
    if (!is_built(GetParam())) GTEST_SKIP() << "this build has no " << GetParam().library;
  }
  TemporaryFolder folder_;
};
INSTANTIATE_TEST_SUITE_P(Over, Net,
                         ::testing::Values(Protocol{"mpi", "MPI", {"tcp", "mpi"}},
                                           Protocol{"grpc", "gRPC", {"tcp", "grpc"}},
                                           Protocol{"grpc+ucx", "UCX", {"tcp", "grpc", "ucx"}},
                                           Protocol{"grpc+mpi", "MPI", {"tcp", "grpc", "mpi"}}),
                         [](const auto& chosen) {
                           std::string name = chosen.param.name;
                           std::replace(name.begin(), name.end(), '+', '_');
                           return name;
                         });

TEST_P(Net, MeasuresEveryTransportOfTheJobAndKeepsTheFitsThatAreGood) {
  const std::string record_path = folder_ / "net.json", file_path = folder_ / "network.json";
  LaunchedJob job(launch_of({"net", "--protocol", GetParam().name, "--max-bytes", "1Mi", "--seconds-per-size", "0.001",
                             "--model", "lenet", "--record", record_path, "--network-file", file_path}));
  ASSERT_EQ(job.exit_code(60s), 0) << job.err() << job.out();
  EXPECT_TRUE(has(job.out(), "all-reduce of the gradients of lenet")) << job.out();
  const nlohmann::json record = read(record_path);
  ASSERT_EQ(record.at("pairs").size(), GetParam().transports.size());
  for (std::size_t i = 0; i < GetParam().transports.size(); ++i) {
    const nlohmann::json& pair = record.at("pairs").at(i);
    const std::string name = GetParam().transports[i];
    EXPECT_EQ(pair.at("transport"), name);
    EXPECT_EQ(pair.at("messages").size(), 3U * 21U);
    // On a busy machine a fit can be bad.
    if (pair.at("fit").at("residual") > 1) {
      EXPECT_TRUE(has(job.out(), "not kept for --all-reduce auto: " + name)) << job.out();
      continue;
    }
    const nlohmann::json kept = read(file_path).at("transports").at(name).at("same_host");
    EXPECT_EQ(kept.at("bytes_per_second"), pair.at("fit").at("bytes_per_second"));
    EXPECT_EQ(kept.at("measured"), record.at("started"));
    EXPECT_EQ(kept.at("load"), record.at("load").at("threads"));
  }
  EXPECT_EQ(record.at("cluster").size(), 2U);
  EXPECT_TRUE(job.is_gone_within(5s));
}

TEST(NetJob, HasEveryTransportOfTheBuildByItself) {
  const TemporaryFolder folder;
  const std::string path = folder / "net.json";
  LaunchedJob job(launch_of({"net", "--max-bytes", "64", "--seconds-per-size", "0.001", "--algorithms", "tree,library",
                             "--no-network-file", "--record", path}));
  ASSERT_EQ(job.exit_code(60s), 0) << job.err() << job.out();
  const nlohmann::json record = read(path);
  Words expected{"tcp", "grpc", "mpi"}, found;
  if (!is_built({.name = "", .library = "gRPC", .transports = {}})) std::erase(expected, "grpc");
  if (is_built({.name = "", .library = "UCX", .transports = {}})) expected.push_back("ucx");
  for (const nlohmann::json& transport : record.at("transports")) found.push_back(transport.at("name"));
  EXPECT_EQ(found, expected);
  for (const nlohmann::json& result : record.at("all_reduce")) {
    EXPECT_TRUE(result.at("algorithm") == "tree" || result.at("transport") == "mpi") << result;
  }
}

TEST(NetJob, EndsWhereATaskDiesInTheMiddle) {
  LaunchedJob job({"--workers", "3", "--oversubscribe", "--", "net", "--seconds-per-size", "60", "--no-network-file"});
  ASSERT_TRUE(job.wait_for_output("tcp ")) << job.err();
  kill(job.programs(3)[1].pid, SIGKILL);
  EXPECT_NE(job.exit_code(20s), 0);
  EXPECT_TRUE(has(job.err(), "rank 1")) << job.err();
  EXPECT_TRUE(job.is_gone_within(5s));
}

TEST(NetJob, KeepsNothingFromTooFewSizes) {
  const TemporaryFolder folder;
  const std::string path = folder / "network.json";
  LaunchedJob job(launch_of({"net", "--max-bytes", "64k", "--algorithms", "none", "--transports", "tcp",
                             "--seconds-per-size", "0.001", "--network-file", path}));
  ASSERT_EQ(job.exit_code(60s), 0) << job.err() << job.out();
  EXPECT_TRUE(has(job.out(), "not kept for --all-reduce auto: tcp, same host: bandwidth was fitted from 0 sizes"))
      << job.out();
  EXPECT_FALSE(std::filesystem::exists(path));
}

class NetFigures : public ::testing::Test {
 protected:
  // What a benchmark says that reads a file with this measurement.
  std::string output_with(const std::string& residual) {
    std::ofstream(folder_ / "network.json") << R"({"schema": "trireme.network/2", "transports": {"mpi": {"same_host":
      {"latency_seconds": 4e-05, "bytes_per_second": 5e8, "small_sizes": 9, "large_sizes": 5, "measured": "then",
       "load": 2.5, "cores": 8, "residual": )" + residual +
                                                   "}}}}";
    LaunchedJob job(launch_of(bench(folder_ / "network.json")));
    EXPECT_EQ(job.exit_code(60s), 0) << job.err();
    return job.out();
  }
  void expect_refused(const std::string& path, const std::string& why) {
    LaunchedJob job(launch_of(bench(path)));
    EXPECT_EQ(job.exit_code(60s), 2);
    EXPECT_TRUE(has(job.err(), why)) << job.err();
  }
  static Words bench(const std::string& file) {
    return {"bench", "--autotune",           "off", "--model",        "lenet", "--batch-size", "2", "--num-batches",
            "1",     "--num-warmup-batches", "0",   "--network-file", file};
  }

  TemporaryFolder folder_;
};

TEST_F(NetFigures, AreWhatBenchChoosesBy) {
  const std::string good = output_with("0.1");
  EXPECT_TRUE(
      has(good,
          "same host 40.0 us + 500.0 MB/s, measured then under a load of 2.5 on 8 cores; doubtful, as a host was busy: "
          "repeat `trireme net`"))
      << good;
}

TEST_F(NetFigures, AreNotUsedIfTheyAreBad) {
  const std::string bad = output_with("5.4");
  EXPECT_FALSE(has(bad, "same host 40.0 us")) << bad;
  EXPECT_TRUE(has(bad, "a measurement is not used: mpi, same host: the residual is 540 %")) << bad;
}

TEST_F(NetFigures, AreReadOnlyFromANetworkFile) {
  expect_refused(folder_ / "absent.json", "there is no such file");
  std::ofstream(folder_ / "old.json") << R"({"schema": "trireme.network/1", "transports": {}})";
  expect_refused(folder_ / "old.json", "not a network file of this version");
}

}  // namespace
}  // namespace trireme::testkit
