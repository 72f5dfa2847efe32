#include <gtest/gtest.h>

#include "trireme/lab/net/network_run.hpp"

namespace trireme::lab {
namespace {

NetworkReport sample_report() {
  NetworkReport report;
  report.members = {{.world_rank = 0, .name = "", .host = "alpha", .pid = 1, .node = 0},
                    {.world_rank = 1, .name = "", .host = "beta", .pid = 2, .node = 1}};
  report.transports = {{"tcp", "a plain socket"}};
  PairResult pair{.transport = "tcp", .pair = {0, 1}, .same_host = false, .messages = {}, .fit = {}};
  for (const std::int64_t bytes : {16, 32, 1000}) {
    pair.messages.push_back({MessageMode::ping_pong, bytes, {1e-6, 2e-6, 3e-6}});
    pair.messages.push_back({MessageMode::one_way, bytes, {1e-6, 1e-6, 1e-6}});
    pair.messages.push_back({MessageMode::bidirectional, bytes, {4e-6, 4e-6, 4e-6}});
  }
  pair.fit = {.cost = {2e-6, 1.25e9}, .residual = 0.125};
  report.pairs = {pair};
  for (const comm::Algorithm algorithm : {comm::Algorithm::ring, comm::Algorithm::tree}) {
    for (const std::int64_t bytes : {64, 3000}) report.all_reduce.push_back({"grpc", algorithm, bytes, 4, {1e-6}});
  }
  return report;
}

TEST(NetworkTables, ShowTimesAndBandwidthsOfFewSizesOrAll) {
  const NetworkReport report = sample_report();
  EXPECT_EQ(pair_table(report.pairs[0], report.members, false),
            "tcp, ranks 0-1 (alpha and beta):\n"
            "message  ping-pong us  +/-    GB/s  one-way us  +/-    GB/s  both ways us  +/-    GB/s\n"
            "-------  ------------  ---  ------  ----------  ---  ------  ------------  ---  ------\n"
            "   16 B           2.0  1.5  0.0080         1.0  0.0  0.0160           4.0  0.0  0.0080\n"
            " 1.0 kB           2.0  1.5  0.5000         1.0  0.0  1.0000           4.0  0.0  0.5000\n");
  EXPECT_NE(pair_table(report.pairs[0], report.members, true).find("32 B"), std::string::npos);
}

TEST(NetworkTables, ShowTheFit) {
  const NetworkReport report = sample_report();
  const std::string text = fit_table(report.pairs, report.members);
  EXPECT_NE(text.find("tcp          0-1  alpha and beta         2.0  1.2500      12 %"), std::string::npos) << text;
}

TEST(NetworkTables, ShowAlgorithmsSideBySideWithBusBandwidth) {
  // 3000 B in 1 us on 4 ranks: 3 GB/s, and 2 * 3 / 4 of it on the bus.
  EXPECT_EQ(all_reduce_table(sample_report().all_reduce, "grpc", false),
            "all-reduce over grpc, 4 ranks; GB/s on the bus, 2 (n - 1) / n x bytes / time:\n"
            " bytes  ring us    GB/s  tree us    GB/s\n"
            "------  -------  ------  -------  ------\n"
            "  64 B      1.0  0.0960      1.0  0.0960\n"
            "3.0 kB      1.0  4.5000      1.0  4.5000\n");
  EXPECT_EQ(all_reduce_table(sample_report().all_reduce, "mpi", false), "");
}

TEST(NetworkRecord, HoldsEverySampleAndWhoWasThere) {
  const Json record = to_json(network_record(sample_report(), "2024-05-01T12:30:00Z", {{"max_bytes", 1000}}));
  EXPECT_EQ(record.at("schema"), "trireme.net/1");
  EXPECT_EQ(record.at("config").at("max_bytes"), 1000);
  EXPECT_EQ(record.at("cluster").at(1).at("host"), "beta");
  const Json& message = record.at("pairs").at(0).at("messages").at(0);
  EXPECT_EQ(message.at("mode"), "ping-pong");
  EXPECT_EQ(message.at("seconds").at("samples").size(), 3U);
  EXPECT_EQ(message.at("seconds").at("median"), 2e-6);
  EXPECT_EQ(record.at("pairs").at(0).at("fit").at("bytes_per_second"), 1.25e9);
  EXPECT_EQ(record.at("all_reduce").size(), 4U);
  EXPECT_FALSE(record.contains("model"));
  for (const char* key : {"command", "started", "build", "machine"}) EXPECT_TRUE(record.contains(key)) << key;
}

}  // namespace
}  // namespace trireme::lab
