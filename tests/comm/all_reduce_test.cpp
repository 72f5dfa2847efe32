// The algorithms of all-reduce over threads, for numbers of ranks that are powers of two and that are not.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "all_reduce_check.hpp"
#include "suite_check.hpp"
#include "trireme/comm/collectives.hpp"
#include "trireme/comm/local/run_local.hpp"

namespace trireme::comm::testkit {
namespace {

class Algorithms : public testing::TestWithParam<Algorithm> {
 protected:
  AllReduceOptions options() const { return {.algorithm = GetParam(), .piece_bytes = 256}; }
};

TEST_P(Algorithms, AgreeWithAPlainSumForAnyNumberOfRanks) {
  for (int size = 1; size <= 9; ++size) {
    EXPECT_NO_THROW(run_local(size,
                              [&](Communicator& communicator) {
                                check_all_reduce(communicator, options(), awkward_sizes(options().piece_bytes));
                              }))
        << size << " ranks";
  }
}

TEST_P(Algorithms, WorkInPlaceInAnArenaOverSeveralNodes) {
  for (const int ranks_per_node : {1, 2, 3, 7}) {
    EXPECT_NO_THROW(run_local({.size = 7, .ranks_per_node = ranks_per_node},
                              [&](Communicator& communicator) {
                                check_all_reduce(communicator, options(), awkward_sizes(options().piece_bytes), true);
                              }))
        << ranks_per_node << " ranks per node";
  }
}

TEST_P(Algorithms, RepeatExactly) {
  std::vector<float> first(1001), second(1001);
  for (std::vector<float>* results : {&first, &second}) {
    run_local(5, [&](Communicator& communicator) {
      std::vector<float> values(1001);
      for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = 1.0f / static_cast<float>(3 + i + 7 * static_cast<std::size_t>(communicator.rank()));
      }
      AllReducer(communicator, options()).reduce(values, Reduction::mean);
      if (communicator.rank() == 3) *results = values;
    });
  }
  EXPECT_EQ(first, second);
}

TEST_P(Algorithms, EndWhenARankFails) {
  const auto body = [&](Communicator& communicator) {
    AllReducer reducer(communicator, options());
    std::vector<float> values(5000);
    for (int step = 0; step < 100; ++step) {
      if (step == 50 && communicator.rank() == 2) fail(ErrorKind::failed, "the dog ate it");
      reducer.reduce(values, Reduction::sum);
    }
  };
  EXPECT_EQ(error_of([&] { run_local(4, body); }), "rank 2: the dog ate it");
}

TEST_P(Algorithms, NameTheRankThatDoesNotCome) {
  const auto body = [&](Communicator& communicator) {
    AllReducer reducer(communicator, options());
    barrier(communicator);
    communicator.set_timeout(std::chrono::milliseconds(100));
    communicator.set_context("bucket 3 of step 17");
    std::vector<float> values(5000);
    if (communicator.rank() == 0) reducer.reduce(values, Reduction::sum);
    if (communicator.rank() == 1) {  // is busy until the other gives up
      while (error_of([&] { communicator.check_peers(); }).empty()) std::this_thread::yield();
    }
  };
  const std::string message = error_of([&] { run_local({.size = 2, .ranks_per_node = 0}, body); });
  expect_contains(message, "rank 0 (");
  expect_contains(message, "with rank 1 (");
  expect_contains(message, "bucket 3 of step 17");
}

// Rank 0 leads its node and waits for the other one, which does not come, on a communicator of the leaders.
TEST_P(Algorithms, EndWhenInterrupted) {
  std::atomic<Communicator*> waiting = nullptr;
  const auto body = [&](Communicator& communicator) {
    AllReducer reducer(communicator, options());
    barrier(communicator);
    communicator.set_timeout(std::chrono::seconds(20));
    std::vector<float> values(5000);
    if (communicator.rank() == 0) waiting = &communicator;
    if (communicator.self().node == 0) reducer.reduce(values, Reduction::sum);
    if (communicator.rank() == 2) {
      while (waiting == nullptr) std::this_thread::yield();
      std::this_thread::sleep_for(std::chrono::milliseconds(20));  // so that it most likely waits by now
      waiting.load()->interrupt();
    }
    while (error_of([&] { communicator.check_peers(); }).empty()) std::this_thread::yield();
  };
  expect_contains(error_of([&] { run_local({.size = 4, .ranks_per_node = 2}, body); }), "rank 0 (node0): interrupted");
}

INSTANTIATE_TEST_SUITE_P(Comm, Algorithms,
                         testing::Values(Algorithm::automatic, Algorithm::ring, Algorithm::halving_doubling,
                                         Algorithm::tree, Algorithm::hierarchical),
                         [](const auto& instance) { return to_string(instance.param); });

TEST(Wire, RanksAgreeInAllForms) {
  for (const Wire wire : {Wire::fp16, Wire::bf16}) {
    for (const Algorithm algorithm : {Algorithm::ring, Algorithm::halving_doubling, Algorithm::tree}) {
      EXPECT_NO_THROW(run_local(6, [&](Communicator& communicator) {
        const AllReduceOptions options{.algorithm = algorithm, .wire = wire, .piece_bytes = 256};
        check_all_reduce(communicator, options, awkward_sizes(options.piece_bytes));
      }));
    }
  }
}

TEST(Wire, IsUsedWhereThereAreMessages) {
  const auto wire_of = [](Communicator& communicator, Algorithm algorithm) {
    return AllReducer(communicator, {.algorithm = algorithm, .wire = Wire::fp16}).wire_for(1'000'000);
  };
  run_local({.size = 4, .ranks_per_node = 2}, [&](Communicator& communicator) {
    EXPECT_EQ(wire_of(communicator, Algorithm::hierarchical), Wire::fp16);
    const auto node = communicator.split(communicator.self().node, 0);
    EXPECT_EQ(wire_of(*node, Algorithm::hierarchical), Wire::fp32);
    EXPECT_EQ(wire_of(*node, Algorithm::ring), Wire::fp16);
    const auto alone = communicator.split(communicator.rank(), 0);
    EXPECT_EQ(wire_of(*alone, Algorithm::ring), Wire::fp32);
  });
}

TEST(AllReducer, RefusesWhatCannotBe) {
  run_local(2, [](Communicator& communicator) {
    expect_contains(error_of([&] { AllReducer(communicator, {.algorithm = Algorithm::library}); }), "has no library");
    expect_contains(error_of([&] { AllReducer(communicator, {.piece_bytes = 100}); }), "a multiple of 64");
    const AllReduceOptions converting{.algorithm = Algorithm::library, .wire = Wire::bf16};
    expect_contains(error_of([&] { AllReducer(communicator, converting); }), "cannot convert to bf16");
  });
  expect_contains(error_of([] { parse_algorithm("rign"); }), "auto, library, ring, halving_doubling");
  expect_contains(error_of([] { parse_wire("fp8"); }), "fp32, fp16, bf16");
}

TEST(AllReducer, FindsDifferentSizes) {
  const std::string message = error_of([] {
    run_local(2, [](Communicator& communicator) {
      AllReducer reducer(communicator, {.algorithm = Algorithm::hierarchical});
      std::vector<float> values(communicator.rank() == 0 ? 10 : 20);
      reducer.reduce(values, Reduction::sum);
    });
  });
  expect_contains(message, "must be the same on all ranks");
}

TEST(AllReducer, ChoosesBySizeAndTopology) {
  run_local({.size = 8, .ranks_per_node = 1}, [](Communicator& communicator) {
    const AllReducer reducer(communicator);
    EXPECT_EQ(reducer.algorithm_for(100), Algorithm::halving_doubling);
    EXPECT_EQ(reducer.algorithm_for(100'000'000), Algorithm::halving_doubling);
  });
  run_local({.size = 8, .ranks_per_node = 4}, [](Communicator& communicator) {
    const AllReducer reducer(communicator);
    EXPECT_EQ(reducer.algorithm_for(100'000'000), Algorithm::hierarchical);
  });
  run_local({.size = 6, .ranks_per_node = 1}, [](Communicator& communicator) {
    // Nothing to share inside a node; no power of two.
    const AllReducer reducer(communicator);
    EXPECT_EQ(reducer.algorithm_for(100'000'000), Algorithm::ring);
    EXPECT_NE(reducer.algorithm_for(100), Algorithm::ring);
  });
  run_local({.size = 4, .ranks_per_node = 2}, [](Communicator& communicator) {
    // A network that a test has found to be as fast as memory, with no latency: fewer stages are better.
    const CostModel flat{.in_node = {1e-6, 1e9}, .across = {1e-6, 1e12}, .add_bytes_per_second = 1e12};
    const AllReducer reducer(communicator, {.cost = flat});
    EXPECT_NE(reducer.algorithm_for(100'000'000), Algorithm::hierarchical);
  });
}

TEST(AllReducer, NamesAreReadBack) {
  for (const Algorithm algorithm : {Algorithm::automatic, Algorithm::library, Algorithm::ring,
                                    Algorithm::halving_doubling, Algorithm::tree, Algorithm::hierarchical}) {
    EXPECT_EQ(parse_algorithm(to_string(algorithm)), algorithm);
  }
  for (const Wire wire : {Wire::fp32, Wire::fp16, Wire::bf16}) EXPECT_EQ(parse_wire(to_string(wire)), wire);
}

}  // namespace
}  // namespace trireme::comm::testkit
