#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <vector>

#include "tests/support/temporary_folder.hpp"
#include "trireme/base/error.hpp"
#include "trireme/comm/link_fit.hpp"
#include "trireme/comm/network_file.hpp"
#include "trireme/lab/net/network_test.hpp"

namespace trireme::lab {
namespace {

std::vector<comm::MessageTime> line(double latency, double bytes_per_second, double noise = 0) {
  std::vector<comm::MessageTime> times;
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
          .fit = {.cost = {latency, bandwidth}, .residual = 0.1, .small_sizes = 9, .large_sizes = 5}};
}

comm::MeasuredWhen at(const std::string& time) { return {.started = time, .load = 0.5, .cores = 4}; }

// As a line has them: a stream of messages is not waited for.
comm::LinkFit fit_of_line(double latency, double bytes_per_second, double noise = 0) {
  return comm::fit_link(line(latency, bytes_per_second, noise), line(0, bytes_per_second, noise));
}

TEST(LinkFit, FindsLatencyAndBandwidthOfALine) {
  for (const double latency : {1e-6, 50e-6, 3e-3}) {
    for (const double bandwidth : {1e8, 12e9}) {
      const comm::LinkFit fit = fit_of_line(latency, bandwidth);
      EXPECT_NEAR(fit.cost.latency_seconds, latency, 1e-6);  // of 16 B, the median of the small ones
      EXPECT_NEAR(fit.cost.bytes_per_second, bandwidth, 1e-6 * bandwidth);
      EXPECT_LT(fit.residual, 0.1);
    }
  }
}

TEST(LinkFit, NoiseShowsInTheResidualAndHardlyInTheFigures) {
  const comm::LinkFit fit = fit_of_line(20e-6, 1e9, 0.1);
  EXPECT_NEAR(fit.cost.latency_seconds, 20e-6, 3e-6);
  EXPECT_NEAR(fit.cost.bytes_per_second, 1e9, 1.2e8);
  EXPECT_GT(fit.residual, 0.05);
}

TEST(LinkFit, SingleSizesThatWereDisturbedDoNotCount) {
  std::vector<comm::MessageTime> ping_pong = line(20e-6, 1e9), one_way = line(0, 1e9);
  for (const std::size_t i : {0, 3, 20, 25}) {
    ping_pong[i].seconds *= 100;
    one_way[i].seconds *= 100;
  }
  const comm::LinkFit fit = comm::fit_link(ping_pong, one_way);
  EXPECT_NEAR(fit.cost.latency_seconds, 20e-6, 1e-6);
  EXPECT_NEAR(fit.cost.bytes_per_second, 1e9, 1e3);
}

TEST(LinkFit, FewSizesAreEnoughButNotOne) {
  const std::vector<comm::MessageTime> large{{1 << 20, 1e-3}, {2 << 20, 2e-3}}, small{{1, 1e-6}, {2, 1e-6}};
  EXPECT_EQ(comm::fit_link(large, large).cost.latency_seconds, 1e-3);
  EXPECT_EQ(comm::fit_link(small, small).cost.bytes_per_second, 2e6);
  const std::vector<comm::MessageTime> one{{64, 1e-6}, {64, 2e-6}};
  EXPECT_THROW(comm::fit_link(one, one), Error);
  EXPECT_THROW(comm::fit_link({}, {}), Error);
}

TEST(LinkFit, IsGoodOnlyWithEnoughSizesAndASmallResidual) {
  EXPECT_EQ(comm::problem_of(fit_of_line(20e-6, 1e9)), "");
  std::vector<comm::MessageTime> up_to_64k = line(20e-6, 1e9);
  std::erase_if(up_to_64k, [](const comm::MessageTime& time) { return time.bytes > 64 << 10; });
  EXPECT_NE(comm::problem_of(comm::fit_link(up_to_64k, up_to_64k))
                .find("bandwidth was fitted from 1 size of messages from 64 KiB on"),
            std::string::npos);
  std::vector<comm::MessageTime> from_256 = line(20e-6, 1e9);
  std::erase_if(from_256, [](const comm::MessageTime& time) { return time.bytes < 256; });
  EXPECT_NE(comm::problem_of(comm::fit_link(from_256, from_256)).find("latency was fitted from 1 size"),
            std::string::npos);
  std::vector<comm::MessageTime> wild = line(20e-6, 1e9);
  for (std::size_t i = 9; i < 16; ++i) wild[i].seconds *= 1000;
  EXPECT_NE(comm::problem_of(comm::fit_link(wild, line(0, 1e9))).find("at most 100 % is allowed"), std::string::npos);
}

TEST(NetworkFile, HoldsTheMedianOfEachKindOfPair) {
  const std::vector<PairResult> pairs{pair_of("grpc", true, 1e-6, 1e9), pair_of("grpc", false, 1e-5, 1e8),
                                      pair_of("grpc", false, 3e-5, 3e8), pair_of("grpc", false, 2e-5, 9e8)};
  const comm::NetworkFits fits = fits_of(pairs, at("2024-05-01T12:30:00Z"));
  ASSERT_EQ(fits.size(), 1U);
  EXPECT_EQ(fits.at("grpc").same_host->fit.cost.bytes_per_second, 1e9);
  EXPECT_EQ(fits.at("grpc").other_host->fit.cost.latency_seconds, 2e-5);
  EXPECT_EQ(fits.at("grpc").other_host->fit.cost.bytes_per_second, 3e8);
}

TEST(NetworkFile, KeepsWhatOtherTestsHaveFound) {
  const testkit::TemporaryFolder folder;
  const std::string path = folder / "below/network.json";
  comm::update_network_file(path, fits_of(std::vector{pair_of("grpc", true, 1e-6, 1e9)}, at("first")));
  comm::update_network_file(path, fits_of(std::vector{pair_of("grpc", false, 5e-6, 5e8)}, at("second")));
  comm::update_network_file(path, fits_of(std::vector{pair_of("mpi", true, 2e-6, 2e9)}, at("third")));
  const comm::NetworkFits fits = comm::read_network_file(path);
  EXPECT_EQ(fits.at("grpc").same_host->fit.cost.latency_seconds, 1e-6);
  EXPECT_EQ(fits.at("grpc").other_host->fit.cost.latency_seconds, 5e-6);
  EXPECT_EQ(fits.at("grpc").same_host->when, at("first"));
  EXPECT_EQ(fits.at("grpc").other_host->when, at("second"));
  EXPECT_EQ(fits.at("mpi").same_host->fit.cost.bytes_per_second, 2e9);
  EXPECT_FALSE(fits.at("mpi").other_host);
}

TEST(NetworkFile, WhatCannotBeReadHasNoFits) {
  const testkit::TemporaryFolder folder;
  EXPECT_TRUE(comm::read_network_file(folder / "absent.json").empty());
  std::ofstream(folder / "other.json") << R"({"schema": "something else", "transports": {"grpc": {}}})";
  EXPECT_TRUE(comm::read_network_file(folder / "other.json").empty());
  std::ofstream(folder / "broken.json") << "{";
  EXPECT_TRUE(comm::read_network_file(folder / "broken.json").empty());
  const comm::NetworkFits odd = comm::parse_fits(
      R"({"schema": "trireme.network/2", "transports": {"grpc": {"same_host": {"latency_seconds": "fast"}}, "mpi": 3}})");
  EXPECT_FALSE(comm::find_fits(odd, "grpc"));
  EXPECT_FALSE(comm::find_fits(odd, "mpi"));
}

TEST(NetworkFile, CostModelTakesWhatWasMeasured) {
  const comm::NetworkFits fits = fits_of(std::vector{pair_of("grpc", false, 7e-5, 1.2e8)}, at("2024-05-01T12:30:00Z"));
  const auto measured = comm::find_fits(fits, "grpc");
  ASSERT_TRUE(measured);
  const comm::CostModel cost = cost_model(*measured);
  EXPECT_EQ(cost.across.latency_seconds, 7e-5);
  EXPECT_EQ(cost.across.bytes_per_second, 1.2e8);
  EXPECT_EQ(cost.in_node.bytes_per_second, comm::CostModel().in_node.bytes_per_second) << "not measured";
  EXPECT_EQ(
      to_string(*measured, std::chrono::sys_days{std::chrono::May / 4 / 2024}),
      "other host 70.0 us + 120.0 MB/s, measured 2 days ago (2024-05-01T12:30:00Z) under a load of 0.5 on 4 cores");
  EXPECT_FALSE(comm::find_fits(fits, "mpi"));
}

TEST(NetworkFile, FiguresInDoubtSaySo) {
  const testkit::TemporaryFolder folder;
  const std::string path = folder / "network.json";
  const comm::MeasuredWhen busy{.started = "2024-05-01T12:30:00Z", .load = 2.5, .cores = 4};
  comm::update_network_file(path, fits_of(std::vector{pair_of("grpc", false, 7e-5, 1.2e8)}, busy));
  const auto text = [&path](std::chrono::year_month_day today) {
    return to_string(comm::read_network_file(path).at("grpc"), std::chrono::sys_days{today});
  };
  const std::string end = ": repeat `trireme net`";
  EXPECT_TRUE(text(std::chrono::May / 4 / 2024).ends_with("; doubtful, as a host was busy" + end));
  const comm::MeasuredWhen newer{.started = "2024-05-02T12:30:00Z", .load = 2.5, .cores = 4};
  comm::mark_contradicted(path, "grpc", &comm::TransportFits::other_host, newer);
  comm::mark_contradicted(path, "grpc", &comm::TransportFits::same_host, busy);
  EXPECT_TRUE(text(std::chrono::May / 4 / 2024).ends_with("; doubtful, as a host was busy" + end));
  comm::mark_contradicted(path, "grpc", &comm::TransportFits::other_host, busy);
  EXPECT_TRUE(text(std::chrono::September / 4 / 2024)
                  .ends_with("; doubtful, as steps contradicted it and it is old and a host was busy" + end));
}

TEST(NetworkFile, BadFitsAreTakenOutAndNamed) {
  std::vector pairs{pair_of("grpc", true, 1e-6, 1e9), pair_of("grpc", false, 1e-5, 1e8),
                    pair_of("ucx", true, 1e-6, 1e9)};
  pairs[0].fit.residual = 5.4;
  pairs[2].fit.large_sizes = 1;
  comm::NetworkFits fits = fits_of(pairs, at("then"));
  const std::vector<std::string> problems = comm::remove_bad(fits);
  ASSERT_EQ(problems.size(), 2U);
  EXPECT_EQ(problems[0].rfind("grpc, same host: the residual is 540 %", 0), 0U) << problems[0];
  EXPECT_EQ(problems[1].rfind("ucx, same host: bandwidth was fitted from 1 size", 0), 0U) << problems[1];
  EXPECT_EQ(comm::names_of(fits), std::vector<std::string>{"grpc, other host"});
}

}  // namespace
}  // namespace trireme::lab
