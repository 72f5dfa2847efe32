// Where variables are placed: the strategies on a small example and on every network, and device strings.
#include "trireme/ps/placement.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>

#include "tests/graph/expect_error.hpp"
#include "trireme/graph/functions.hpp"
#include "trireme/models/model.hpp"

namespace trireme::ps {
namespace {

using testkit::expect_bad_input;

Tensor zeros(Graph& graph, const Shape& shape, const std::string& name, bool trainable = true) {
  return variable(graph, shape, op::Initializer::constant(0), name, trainable);
}

std::vector<int> servers_of(const Placement& placement) {
  std::vector<int> servers;
  for (std::size_t i = 0; i < placement.variables().size(); ++i) servers.push_back(placement.server_of(i));
  return servers;
}

std::vector<std::int64_t> elements_of(const Placement& placement) {
  std::vector<std::int64_t> elements;
  for (const ServerLoad& load : placement.loads()) elements.push_back(load.elements);
  return elements;
}

// The two-layer network of the report on TensorFlow at CSCS, listings 4 and 5.
class Figure4 : public ::testing::Test {
 protected:
  Figure4() {
    zeros(graph_, {784, 100}, "weights_1");
    zeros(graph_, {100}, "biases_1");
    zeros(graph_, {100, 10}, "weights_2");
    zeros(graph_, {10}, "biases_2");
  }
  Graph graph_;
};

TEST_F(Figure4, RoundRobinOnThreeServers) {
  const Placement placement(graph_, Strategy::round_robin, 3);
  EXPECT_EQ(servers_of(placement), (std::vector<int>{0, 1, 2, 0}));
  EXPECT_EQ(elements_of(placement), (std::vector<std::int64_t>{78410, 100, 1000}));
  EXPECT_EQ(placement.loads()[0].variables, 2);
  EXPECT_EQ(placement.loads()[0].bytes(), 4 * 78410);
  EXPECT_DOUBLE_EQ(placement.imbalance(), 78410.0 * 3 / 79510);
}

TEST_F(Figure4, RoundRobinOnTwoServersPutsAllWeightsOnTheFirst) {
  const Placement placement(graph_, Strategy::round_robin, 2);
  EXPECT_EQ(servers_of(placement), (std::vector<int>{0, 1, 0, 1}));
  EXPECT_EQ(elements_of(placement), (std::vector<std::int64_t>{79400, 110}));
}

TEST_F(Figure4, GreedyOnThreeAndOnTwoServers) {
  const Placement three(graph_, Strategy::greedy, 3);
  EXPECT_EQ(servers_of(three), (std::vector<int>{0, 1, 2, 1}));
  EXPECT_EQ(elements_of(three), (std::vector<std::int64_t>{78400, 110, 1000}));
  const Placement two(graph_, Strategy::greedy, 2);
  EXPECT_EQ(servers_of(two), (std::vector<int>{0, 1, 1, 1}));
  EXPECT_EQ(elements_of(two), (std::vector<std::int64_t>{78400, 1110}));
}

TEST_F(Figure4, SplitCutsTheLargeOneAlone) {
  const Placement placement(graph_, Strategy::split, 3);
  EXPECT_EQ(servers_of(placement), (std::vector<int>{-1, 0, 1, 2}));
  EXPECT_LT(placement.imbalance(), 1.001);
  EXPECT_EQ(placement.loads()[2].variables, 1);
  EXPECT_EQ(placement.loads()[2].pieces, 1);
}

TEST_F(Figure4, OneServerHoldsEverything) {
  for (const Strategy strategy : {Strategy::round_robin, Strategy::greedy, Strategy::split}) {
    const Placement placement(graph_, strategy, 1);
    EXPECT_EQ(servers_of(placement), std::vector<int>(4, 0)) << to_string(strategy);
    EXPECT_EQ(placement.imbalance(), 1);
  }
}

TEST(Placement, VariablesThatAreNotTrainedStayWithTheWorkers) {
  Graph graph;
  zeros(graph, {4}, "weights");
  zeros(graph, {4}, "running_mean", false);
  zeros(graph, {4}, "bias");
  const Placement placement(graph, Strategy::round_robin, 2);
  EXPECT_EQ(servers_of(placement), (std::vector<int>{0, 1}));
  EXPECT_EQ(placement.variables()[1].name, "bias");
}

TEST(Placement, GreedyTiesGoToTheLowestIndex) {
  Graph graph;
  for (int i = 0; i < 6; ++i) zeros(graph, {8}, "v");
  EXPECT_EQ(servers_of(Placement(graph, Strategy::greedy, 3)), (std::vector<int>{0, 1, 2, 0, 1, 2}));
}

TEST(Placement, DevicesWinOverTheStrategyAndCountInTheLoads) {
  Graph graph;
  zeros(graph, {10}, "first");
  {
    const Graph::DeviceScope device(graph, "/job:ps/task:1/cpu:0");
    zeros(graph, {1000}, "pinned");
  }
  zeros(graph, {10}, "second");
  zeros(graph, {10}, "third");
  // A pinned variable takes no turn.
  EXPECT_EQ(servers_of(Placement(graph, Strategy::round_robin, 2)), (std::vector<int>{0, 1, 1, 0}));
  EXPECT_EQ(servers_of(Placement(graph, Strategy::greedy, 2)), (std::vector<int>{0, 1, 0, 0}));
}

TEST(Placement, SplitFillsUpAroundPinnedVariables) {
  Graph graph;
  {
    const Graph::DeviceScope device(graph, "/job:ps/task:2");
    zeros(graph, {30000}, "pinned");
  }
  zeros(graph, {60000}, "large");
  const Placement placement(graph, Strategy::split, 3);
  EXPECT_EQ(servers_of(placement), (std::vector<int>{2, -1}));
  EXPECT_EQ(elements_of(placement), (std::vector<std::int64_t>{30000, 30000, 30000}));
  EXPECT_EQ(placement.variables()[1].pieces[2].count(), 0);
  EXPECT_EQ(placement.loads()[2].pieces, 0);
}

TEST(Placement, DevicesThatNoServerHas) {
  const auto place_on = [](const std::string& device) {
    Graph graph;
    const Graph::DeviceScope scope(graph, device);
    zeros(graph, {4}, "weights");
    Placement(graph, Strategy::greedy, 2);
  };
  expect_bad_input([&] { place_on("/job:ps/task:2"); },
                   {"'weights'", "/job:ps/task:2", "no task 2", "2 parameter servers"});
  expect_bad_input([&] { place_on("/job:worker/task:0"); }, {"'weights'", "/job:worker/task:0", "parameter servers"});
  expect_bad_input([&] { place_on("/gpu:0"); }, {"'weights'", "/gpu:0", "do not use GPUs"});
  expect_bad_input([&] { place_on("/job:ps/task:0/gpu:0"); }, {"'weights'", "do not use GPUs"});
  expect_bad_input([&] { place_on("/job:ps/cpu:1"); }, {"'weights'", "one CPU device"});
  expect_bad_input([&] { place_on("/task:1"); }, {"'weights'", "/job:ps/task:1"});
  EXPECT_NO_THROW(place_on("/job:ps/cpu:0"));
  EXPECT_NO_THROW(place_on("/cpu:0"));
}

TEST(Placement, NothingToPlace) {
  Graph graph;
  expect_bad_input([&] { Placement(graph, Strategy::greedy, 2); }, {"no trainable variable"});
  zeros(graph, {4}, "weights");
  expect_bad_input([&] { Placement(graph, Strategy::greedy, 0); }, {"0 parameter servers", "1 or more"});
}

TEST(Strategies, NamesAndTheListOfThem) {
  for (const Strategy strategy : {Strategy::round_robin, Strategy::greedy, Strategy::split}) {
    EXPECT_EQ(parse_strategy(to_string(strategy)), strategy);
  }
  expect_bad_input([] { parse_strategy("random"); }, {"unknown placement 'random'", "round_robin, greedy, split"});
}

// Ranges that follow each other from the first element to the last, beginning at whole lines.
void expect_whole(const std::vector<ElementRange>& ranges, std::int64_t elements) {
  std::int64_t begin = 0;
  for (const ElementRange& range : ranges) {
    EXPECT_EQ(range.begin, begin);
    EXPECT_GE(range.end, range.begin);
    EXPECT_TRUE(range.count() == 0 || range.begin % kCutAlignment == 0) << range.begin;
    begin = range.end;
  }
  EXPECT_EQ(begin, elements);
}

TEST(Cuts, OfWholeVariablesAreOnTheirServer) {
  Graph graph;
  zeros(graph, {5}, "a");
  zeros(graph, {7}, "b");
  const Placement placement(graph, Strategy::round_robin, 3);
  EXPECT_EQ(placement.cuts(1, 16), (std::vector<ElementRange>{{0, 0}, {0, 16}, {16, 16}}));
}

TEST(Cuts, StretchWithThePadding) {
  Graph graph;
  zeros(graph, {64, 1001}, "weights");
  const Placement placement(graph, Strategy::split, 4);
  EXPECT_EQ(placement.cuts(0, 64 * 1001), placement.variables()[0].pieces);
  const std::vector<ElementRange> padded = placement.cuts(0, 64 * 1008);
  expect_whole(padded, 64 * 1008);
  for (const ElementRange& range : padded) {
    EXPECT_NEAR(static_cast<double>(range.count()), 16 * 1008, 2 * kCutAlignment);
  }
}

class EveryNetwork : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    for (const Network& info : model_list()) {
      build_model(*graphs_.emplace_back(std::make_unique<Graph>()), info.name, {.batch_size = 1});
    }
  }
  static void TearDownTestSuite() { graphs_.clear(); }

  // Calls check(placement) for each network on 2 to 8 servers.
  template <typename Check>
  void place_all(Strategy strategy, const Check& check) {
    for (std::size_t i = 0; i < graphs_.size(); ++i) {
      for (int servers = 2; servers <= 8; ++servers) {
        SCOPED_TRACE(fmt::format("{} on {} servers", model_list()[i].name, servers));
        check(Placement(*graphs_[i], strategy, servers));
      }
    }
  }

  static inline std::vector<std::unique_ptr<Graph>> graphs_;
};

TEST_F(EveryNetwork, LoadsAddUpToTheVariables) {
  for (const Strategy strategy : {Strategy::round_robin, Strategy::greedy, Strategy::split}) {
    place_all(strategy, [](const Placement& placement) {
      std::vector<std::int64_t> held(placement.loads().size());
      for (std::size_t i = 0; i < placement.variables().size(); ++i) {
        const std::int64_t elements = placement.variables()[i].elements();
        const std::vector<ElementRange> ranges = placement.cuts(i, elements);
        expect_whole(ranges, elements);
        for (std::size_t server = 0; server < held.size(); ++server) held[server] += ranges[server].count();
      }
      EXPECT_EQ(held, elements_of(placement));
    });
  }
}

TEST_F(EveryNetwork, GreedyIsNoFurtherFromEvenThanItsLargestVariable) {
  place_all(Strategy::greedy, [](const Placement& placement) {
    const std::vector<std::int64_t> loads = elements_of(placement);
    std::int64_t largest = 0;
    for (const PlacedVariable& variable : placement.variables()) largest = std::max(largest, variable.elements());
    EXPECT_LE(std::ranges::max(loads) - std::ranges::min(loads), largest);
  });
}

TEST_F(EveryNetwork, SplitIsEvenWithinOnePercent) {
  place_all(Strategy::split, [](const Placement& placement) { EXPECT_LT(placement.imbalance(), 1.01); });
}

TEST_F(EveryNetwork, SplitMakesNoTinyPieces) {
  place_all(Strategy::split, [](const Placement& placement) {
    for (const PlacedVariable& variable : placement.variables()) {
      EXPECT_TRUE(variable.server >= 0 || variable.elements() >= 1024 * placement.servers()) << variable.name;
    }
  });
}

}  // namespace
}  // namespace trireme::ps
