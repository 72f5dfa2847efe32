#include "trireme/lab/network_fit.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <vector>

#include "tests/support/temporary_folder.hpp"
#include "trireme/base/error.hpp"
#include "trireme/lab/network_file.hpp"

namespace trireme::lab {
namespace {

std::vector<MessageTime> line(double latency, double bytes_per_second, double noise = 0) {
  std::vector<MessageTime> times;
  double sign = 1;
  for (std::int64_t bytes = 1; bytes <= 1 << 28; bytes *= 2, sign = -sign) {
    const double seconds = latency + static_cast<double>(bytes) / bytes_per_second;
    times.push_back({bytes, seconds * (1 + sign * noise)});
  }
  return times;
}

PairResult pair_of(const std::string& transport, bool same_host, double latency, double bandwidth) {
  return {.transport = transport,
          .pair = {0, 1},
          .same_host = same_host,
          .messages = {},
          .fit = {.cost = {latency, bandwidth}, .residual = 0.1}};
}

// As a line has them: a stream of messages is not waited for.
LinkFit fit_of_line(double latency, double bytes_per_second, double noise = 0) {
  return fit_link(line(latency, bytes_per_second, noise), line(0, bytes_per_second, noise));
}

TEST(LinkFit, FindsLatencyAndBandwidthOfALine) {
  for (const double latency : {1e-6, 50e-6, 3e-3}) {
    for (const double bandwidth : {1e8, 12e9}) {
      const LinkFit fit = fit_of_line(latency, bandwidth);
      EXPECT_NEAR(fit.cost.latency_seconds, latency, 1e-6);  // of 16 B, the median of the small ones
      EXPECT_NEAR(fit.cost.bytes_per_second, bandwidth, 1e-6 * bandwidth);
      EXPECT_LT(fit.residual, 0.1);
    }
  }
}

TEST(LinkFit, NoiseShowsInTheResidualAndHardlyInTheFigures) {
  const LinkFit fit = fit_of_line(20e-6, 1e9, 0.1);
  EXPECT_NEAR(fit.cost.latency_seconds, 20e-6, 3e-6);
  EXPECT_NEAR(fit.cost.bytes_per_second, 1e9, 1.2e8);
  EXPECT_GT(fit.residual, 0.05);
}

TEST(LinkFit, SingleSizesThatWereDisturbedDoNotCount) {
  std::vector<MessageTime> ping_pong = line(20e-6, 1e9), one_way = line(0, 1e9);
  for (const std::size_t i : {0, 3, 20, 25}) {
    ping_pong[i].seconds *= 100;
    one_way[i].seconds *= 100;
  }
  const LinkFit fit = fit_link(ping_pong, one_way);
  EXPECT_NEAR(fit.cost.latency_seconds, 20e-6, 1e-6);
  EXPECT_NEAR(fit.cost.bytes_per_second, 1e9, 1e3);
}

TEST(LinkFit, FewSizesAreEnoughButNotOne) {
  const std::vector<MessageTime> large{{1 << 20, 1e-3}, {2 << 20, 2e-3}}, small{{1, 1e-6}, {2, 1e-6}};
  EXPECT_EQ(fit_link(large, large).cost.latency_seconds, 1e-3);
  EXPECT_EQ(fit_link(small, small).cost.bytes_per_second, 2e6);
  const std::vector<MessageTime> one{{64, 1e-6}, {64, 2e-6}};
  EXPECT_THROW(fit_link(one, one), Error);
  EXPECT_THROW(fit_link({}, {}), Error);
}

TEST(NetworkFile, HoldsTheMedianOfEachKindOfPair) {
  const std::vector<PairResult> pairs{pair_of("grpc", true, 1e-6, 1e9), pair_of("grpc", false, 1e-5, 1e8),
                                      pair_of("grpc", false, 3e-5, 3e8), pair_of("grpc", false, 2e-5, 9e8)};
  const NetworkFits fits = fits_of(pairs, "2024-05-01T12:30:00Z");
  ASSERT_EQ(fits.size(), 1U);
  EXPECT_EQ(fits.at("grpc").same_host->cost.bytes_per_second, 1e9);
  EXPECT_EQ(fits.at("grpc").other_host->cost.latency_seconds, 2e-5);
  EXPECT_EQ(fits.at("grpc").other_host->cost.bytes_per_second, 3e8);
}

TEST(NetworkFile, KeepsWhatOtherTestsHaveFound) {
  const testkit::TemporaryFolder folder;
  const std::string path = folder / "below/network.json";
  update_network_file(path, fits_of(std::vector{pair_of("grpc", true, 1e-6, 1e9)}, "first"));
  update_network_file(path, fits_of(std::vector{pair_of("grpc", false, 5e-6, 5e8)}, "second"));
  update_network_file(path, fits_of(std::vector{pair_of("mpi", true, 2e-6, 2e9)}, "third"));
  const NetworkFits fits = read_network_file(path);
  EXPECT_EQ(fits.at("grpc").same_host->cost.latency_seconds, 1e-6);
  EXPECT_EQ(fits.at("grpc").other_host->cost.latency_seconds, 5e-6);
  EXPECT_EQ(fits.at("grpc").measured, "second");
  EXPECT_EQ(fits.at("mpi").same_host->cost.bytes_per_second, 2e9);
  EXPECT_FALSE(fits.at("mpi").other_host);
}

TEST(NetworkFile, WhatCannotBeReadHasNoFits) {
  const testkit::TemporaryFolder folder;
  EXPECT_TRUE(read_network_file(folder / "absent.json").empty());
  std::ofstream(folder / "other.json") << R"({"schema": "something else", "transports": {"grpc": {}}})";
  EXPECT_TRUE(read_network_file(folder / "other.json").empty());
  std::ofstream(folder / "broken.json") << "{";
  EXPECT_TRUE(read_network_file(folder / "broken.json").empty());
  const NetworkFits odd = parse_fits(
      R"({"schema": "trireme.network/1", "transports": {"grpc": {"same_host": {"latency_seconds": "fast"}}, "mpi": 3}})");
  EXPECT_FALSE(find_fits(odd, "grpc"));
  EXPECT_FALSE(find_fits(odd, "mpi"));
}

TEST(NetworkFile, CostModelTakesWhatWasMeasured) {
  const NetworkFits fits = fits_of(std::vector{pair_of("grpc", false, 7e-5, 1.2e8)}, "2024-05-01T12:30:00Z");
  const auto measured = find_fits(fits, "grpc");
  ASSERT_TRUE(measured);
  const comm::CostModel cost = cost_model(*measured);
  EXPECT_EQ(cost.across.latency_seconds, 7e-5);
  EXPECT_EQ(cost.across.bytes_per_second, 1.2e8);
  EXPECT_EQ(cost.in_node.bytes_per_second, comm::CostModel().in_node.bytes_per_second) << "not measured";
  EXPECT_EQ(to_string(*measured), "other host 70.0 us + 120.0 MB/s, measured 2024-05-01T12:30:00Z");
  EXPECT_FALSE(find_fits(fits, "mpi"));
}

}  // namespace
}  // namespace trireme::lab
