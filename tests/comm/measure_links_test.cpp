#include "trireme/comm/measure_links.hpp"

#include <gtest/gtest.h>

#include <mutex>

#include "trireme/comm/local/run_local.hpp"

namespace trireme::comm {
namespace {

// All ranks get the same figures: of both kinds of links if there are both, else the default of the other.
TEST(MeasureLinks, GivesAllRanksTheSlowestLinkOfEachKind) {
  for (const int ranks_per_node : {1, 2, 4}) {
    std::mutex mutex;
    std::vector<CostModel> all;
    run_local({.size = 4, .ranks_per_node = ranks_per_node}, [&](Communicator& world) {
      const CostModel cost = measure_links(world);
      const std::scoped_lock lock(mutex);
      all.push_back(cost);
    });
    ASSERT_EQ(all.size(), 4U);
    const auto is_default = [](const LinkCost& cost, const LinkCost& otherwise) {
      return cost.latency_seconds == otherwise.latency_seconds && cost.bytes_per_second == otherwise.bytes_per_second;
    };
    for (const CostModel& cost : all) {
      EXPECT_EQ(cost.across.latency_seconds, all[0].across.latency_seconds);
      EXPECT_EQ(cost.in_node.bytes_per_second, all[0].in_node.bytes_per_second);
      EXPECT_EQ(is_default(cost.in_node, CostModel().in_node), ranks_per_node == 1);
      EXPECT_EQ(is_default(cost.across, CostModel().across), ranks_per_node == 4);
      EXPECT_GT(cost.across.bytes_per_second, 0);
    }
  }
}

}  // namespace
}  // namespace trireme::comm
