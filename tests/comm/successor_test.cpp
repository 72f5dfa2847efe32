// Communicators of those who are left, made without a message.
#include <gtest/gtest.h>

#include "trireme/base/error.hpp"
#include "trireme/comm/all_reducer.hpp"
#include "trireme/comm/collectives.hpp"
#include "trireme/comm/local/run_local.hpp"

namespace trireme::comm {
namespace {

TEST(Successor, NeedsNoAgreement) {
  run_local(4, [](Communicator& everybody) {
    if (everybody.rank() == 2) return;  // it never hears of it
    // Groups made before by some alone, as after a failed recovery, do not matter.
    if (everybody.rank() == 0) std::ignore = everybody.successor({0}, 1)->split(0, 0);
    const auto left = everybody.successor({0, 1, 3}, 2);
    EXPECT_EQ(left->size(), 3);
    EXPECT_EQ(left->self().world_rank, everybody.rank());
    EXPECT_EQ(all_gather_value(*left, everybody.rank()), (std::vector<int>{0, 1, 3}));
    const auto half = left->split(left->rank() == 1 ? 1 : 0, 0);
    EXPECT_EQ(all_gather_value(*half, everybody.rank()),
              everybody.rank() == 1 ? std::vector<int>{1} : (std::vector<int>{0, 3}));
  });
}

TEST(Successor, OldMessagesStayOut) {
  run_local(2, [](Communicator& everybody) {
    const int other = 1 - everybody.rank();
    const auto first = everybody.successor({0, 1}, 1);
    const int old = 1, young = 2;
    int received = 0;
    first->send(std::as_bytes(std::span(&old, 1)), other, 0);
    EXPECT_TRUE(first->retire());
    const auto second = everybody.successor({0, 1}, 2);
    second->send(std::as_bytes(std::span(&young, 1)), other, 0);
    second->receive(std::as_writable_bytes(std::span(&received, 1)), other, 0);
    EXPECT_EQ(received, young);
  });
}

TEST(Successor, ItsGroupsAreInterruptedTogether) {
  run_local(2, [](Communicator& everybody) {
    const auto epoch = everybody.successor({0, 1}, 1);
    const auto group = epoch->split(0, epoch->rank());
    epoch->interrupt();
    EXPECT_THROW(group->check_peers(), Error);
    everybody.check_peers();
  });
}

TEST(Successor, NodesAreAsGiven) {
  run_local({.size = 4, .nodes = {0, 1, 1, 0}}, [](Communicator& everybody) {
    EXPECT_EQ(layout_of(everybody).nodes, 2);
    EXPECT_EQ(everybody.members()[3].node, everybody.members()[0].node);
    std::vector<float> values(1000, static_cast<float>(everybody.rank()));
    AllReducer(everybody, {.algorithm = Algorithm::hierarchical}).reduce(values, Reduction::sum);
    EXPECT_EQ(values, std::vector<float>(1000, 6));
  });
}

}  // namespace
}  // namespace trireme::comm
