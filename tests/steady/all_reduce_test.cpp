// The all-reduce inside a node allocates nothing once it has run.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "counted_allocations.hpp"
#include "trireme/comm/all_reducer.hpp"
#include "trireme/comm/local/run_local.hpp"

namespace trireme::comm {
namespace {

TEST(SteadyState, AllReduceInANodeAllocatesNothing) {
  std::atomic<bool> counted = false;
  run_local(2, [&](Communicator& communicator) {
    const auto arena = communicator.share(1 << 20);
    ASSERT_NE(arena, nullptr);
    AllReducer reducer(communicator, {}, arena.get());
    std::vector<float> apart(100000);
    const std::span<float> in_arena(reinterpret_cast<float*>(arena->data()), 200000);
    const auto step = [&] {
      communicator.set_context("bucket 3 of step 17");
      reducer.reduce(in_arena, Reduction::mean);
      reducer.reduce(apart, Reduction::mean);
    };
    step();
    step();
    if (communicator.rank() == 0) testkit::start_counting();
    for (int i = 0; i < 10; ++i) step();
    if (communicator.rank() == 0) {
      EXPECT_EQ(testkit::stop_counting().ours, 0);
      counted = true;
    }
    while (!counted) std::this_thread::yield();
  });
}

}  // namespace
}  // namespace trireme::comm
