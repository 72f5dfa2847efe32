#include "trireme/lab/net/network_run.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <numeric>

#include "tests/lab/bench/corrupting_communicator.hpp"
#include "trireme/base/error.hpp"
#include "trireme/comm/local/run_local.hpp"

namespace trireme::lab {
namespace {

using testkit::CorruptingCommunicator;

constexpr std::int64_t kMostBytes = 4096;

NetworkPlan small_plan() {
  NetworkPlan plan;
  plan.options.max_bytes = kMostBytes;
  plan.options.seconds_per_size = 1e-4;
  return plan;
}

// What all ranks report, rank 0's first.
std::vector<NetworkReport> run(const NetworkPlan& plan, const comm::LocalOptions& ranks) {
  std::vector<NetworkReport> reports(ranks.size);
  comm::run_local(ranks, [&](comm::Communicator& communicator) {
    const NetworkJob job{.control = communicator,
                         .transports = {{"local", &communicator}},
                         .hosts = std::vector<std::string>(static_cast<std::size_t>(ranks.size), "localhost")};
    NetworkObserver silent;
    reports[communicator.rank()] = run_network_test(plan, job, silent);
  });
  return reports;
}

std::string error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(NetworkRun, MeasuresPairsOverSocketAndTransportAndTellsAllRanks) {
  const auto reports = run(small_plan(), {.size = 3, .ranks_per_node = 2});
  const NetworkReport& report = reports[0];
  // Ranks 0 and 1 of the first host, 0 and 2 between the two; by tcp and by local messages.
  ASSERT_EQ(report.pairs.size(), 4U);
  for (std::size_t i = 0; i < report.pairs.size(); ++i) {
    const PairResult& pair = report.pairs[i];
    EXPECT_EQ(pair.transport, i % 2 == 0 ? "tcp" : "local");
    EXPECT_EQ(pair.pair, i < 2 ? (RankPair{0, 1}) : (RankPair{0, 2}));
    EXPECT_EQ(pair.same_host, i < 2);
    EXPECT_EQ(pair.messages.size(), 3U * 13U) << "ways times sizes from 1 to 4096";
    for (const MessageResult& message : pair.messages) {
      EXPECT_GE(message.seconds.size(), 2U);
      EXPECT_GT(message.median(), 0);
    }
    EXPECT_GT(pair.fit.cost.bytes_per_second, 0);
    EXPECT_EQ(reports[2].pairs[i].messages[5].seconds, pair.messages[5].seconds);
  }
}

TEST(NetworkRun, MeasuresEveryAlgorithmAndTheBucketsOfANetwork) {
  NetworkPlan plan = small_plan();
  plan.model = "lenet";
  const auto reports = run(plan, {.size = 2});
  const NetworkReport& report = reports[0];
  EXPECT_EQ(report.all_reduce.size(), 4U * 6U) << "algorithms times sizes 4, 16, ..., 4096";
  EXPECT_EQ(report.all_reduce[0].seconds, reports[1].all_reduce[0].seconds);
  EXPECT_EQ(report.model_all_reduce.size(), 4U);
  EXPECT_EQ(report.buckets, gradient_bucket_bytes("lenet"));
  for (const AllReduceResult& result : report.model_all_reduce) {
    EXPECT_EQ(result.bytes, std::accumulate(report.buckets.begin(), report.buckets.end(), std::int64_t{0}));
    EXPECT_DOUBLE_EQ(result.bus_bytes_per_second(), result.algorithm_bytes_per_second()) << "2 (n - 1) / n of 2";
  }
}

TEST(NetworkRun, BucketsHoldTheGradientsOfTheNetwork) {
  constexpr double kGradientBytes = 4.0 * 25'559'081;
  const std::vector<std::int64_t> buckets = gradient_bucket_bytes("resnet50");
  const auto bytes = static_cast<double>(std::accumulate(buckets.begin(), buckets.end(), std::int64_t{0}));
  EXPECT_GE(bytes, kGradientBytes);
  EXPECT_LE(bytes, 1.02 * kGradientBytes) << "blocked layouts pad a little";
  EXPECT_GT(buckets.size(), 8U);
}

TEST(NetworkRun, ChoosesFewerTransportsAndRefusesThoseItHasNot) {
  NetworkPlan plan = small_plan();
  plan.measures_all_reduce = false;
  plan.transports = {"local"};
  EXPECT_EQ(run(plan, {.size = 2})[0].pairs.size(), 1U);
  plan.transports = {"mpi"};
  EXPECT_NE(error_of([&] { run(plan, {.size = 2}); }).find("this job has tcp, local"), std::string::npos);
}

TEST(NetworkRun, TheLibrarysAllReduceIsRefusedWhereNoTransportHasOne) {
  NetworkPlan plan = small_plan();
  plan.algorithms = {comm::Algorithm::ring, comm::Algorithm::library};
  EXPECT_NE(error_of([&] { run(plan, {.size = 2}); }).find("--algorithms library: none of the measured transports"),
            std::string::npos);
}

TEST(PairTest, NoticesACorruptByteInEveryWayOfSending) {
  for (const MessageMode mode : {MessageMode::ping_pong, MessageMode::one_way, MessageMode::bidirectional}) {
    for (const std::int64_t bytes : {64, 65, 4096}) {
      const std::string error = error_of([&] {
        comm::run_local(2, [&](comm::Communicator& communicator) {
          CorruptingCommunicator corrupting(communicator, 64);
          const NetworkOptions options{.max_bytes = kMostBytes, .seconds_per_size = 1e-4};
          const auto link =
              make_transport_link(communicator.rank() == 0 ? corrupting : communicator, 1 - communicator.rank());
          PairTest(*link, communicator.rank() == 0, options).measure(mode, bytes);
        });
      });
      EXPECT_NE(error.find("was not received as it was sent"), std::string::npos) << to_string(mode) << ": " << error;
    }
  }
}

TEST(PairTest, AnErrorNamesTheRanksAndTheTransport) {
  const std::string error = error_of([&] {
    comm::run_local(2, [&](comm::Communicator& communicator) {
      CorruptingCommunicator corrupting(communicator, 64);
      measure_pair(communicator, {"shaky", &corrupting}, {0, 1}, small_plan().options);
    });
  });
  EXPECT_NE(error.find("ping-pong between rank 0 and rank 1 over shaky"), std::string::npos) << error;
}

TEST(AllReduceTest, NoticesAWrongMean) {
  const std::string error = error_of([&] {
    comm::run_local(2, [&](comm::Communicator& communicator) {
      CorruptingCommunicator corrupting(communicator, 1024);
      const AllReduceTest test(corrupting, kMostBytes);
      test.measure({.algorithm = comm::Algorithm::ring}, std::span(&kMostBytes, 1), 1e-4);
    });
  });
  EXPECT_NE(error.find("all-reduce: element"), std::string::npos) << error;
}

TEST(Pairs, AreReadAndChecked) {
  comm::run_local({.size = 4, .ranks_per_node = 2}, [](comm::Communicator& communicator) {
    using Pairs = std::vector<RankPair>;
    EXPECT_EQ(parse_pairs("hosts", communicator), (Pairs{{0, 1}, {2, 3}, {0, 2}}));
    EXPECT_EQ(parse_pairs("all", communicator).size(), 6U);
    EXPECT_EQ(parse_pairs("3-1,0-2", communicator), (Pairs{{1, 3}, {0, 2}}));
    for (const char* bad : {"", "0", "0-", "0-4", "1-1", "-1-2", "0-1;2-3", "0-1,"}) {
      EXPECT_THROW(parse_pairs(bad, communicator), Error) << bad;
    }
  });
}

TEST(MessageSizes, DoubleAndCanBePerturbed) {
  EXPECT_EQ(message_sizes({.min_bytes = 1, .max_bytes = 10}), (std::vector<std::int64_t>{1, 2, 4, 8, 10}));
  EXPECT_EQ(message_sizes({.min_bytes = 8, .max_bytes = 16, .perturbation = 3}),
            (std::vector<std::int64_t>{5, 8, 11, 13, 16, 19}));
}

TEST(Repetitions, FillTheTimeWithSamples) {
  const Repetitions quick = plan_repetitions(1e-6, 0.2);
  EXPECT_EQ(quick.samples * quick.per_sample, 200'000);
  EXPECT_LE(quick.samples, 1000);
  const Repetitions slow = plan_repetitions(10, 0.2);
  EXPECT_EQ(slow.samples * slow.per_sample, 2) << "one is no spread";
}

}  // namespace
}  // namespace trireme::lab
