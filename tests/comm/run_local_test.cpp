#include "trireme/comm/local/run_local.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

#include "suite_check.hpp"
#include "trireme/comm/collectives.hpp"
#include "trireme/comm/world.hpp"

namespace trireme::comm::testkit {
namespace {

TEST(RunLocal, PretendsNodes) {
  run_local({.size = 5, .ranks_per_node = 2}, [](Communicator& communicator) {
    EXPECT_EQ(communicator.self().node, communicator.rank() / 2);
    EXPECT_EQ(communicator.self().host, "node" + std::to_string(communicator.rank() / 2));
  });
}

TEST(RunLocal, RethrowsTheFirstErrorWhileOthersWait) {
  const auto body = [](Communicator& communicator) {
    if (communicator.rank() == 1) throw std::logic_error("a mistake");
    barrier(communicator);
  };
  EXPECT_THROW(run_local(3, body), std::logic_error);
}

TEST(RunLocal, RefusesNoRanks) {
  expect_contains(error_of([] { run_local(0, [](Communicator&) {}); }), "at least 1");
}

TEST(World, IsOneRankWithoutALauncher) {
  const auto world = join_world();
  EXPECT_EQ(world->communicator().size(), 1);
  EXPECT_EQ(world->communicator().protocol(), "local");
  barrier(world->communicator());
  world->leave();
}

TEST(World, ReadsItsPlaceFromTheLauncher) {
  EXPECT_EQ(launch_place().size, 1);
  setenv("OMPI_COMM_WORLD_RANK", "2", 1);
  EXPECT_EQ(launch_place().size, 1);  // half of it is nothing
  setenv("OMPI_COMM_WORLD_SIZE", "4", 1);
  const LaunchPlace place = launch_place();
  EXPECT_EQ(place.rank, 2);
  EXPECT_EQ(place.size, 4);
  EXPECT_EQ(place.launcher, "Open MPI");
  unsetenv("OMPI_COMM_WORLD_RANK");
  unsetenv("OMPI_COMM_WORLD_SIZE");
}

}  // namespace
}  // namespace trireme::comm::testkit
