// Who is to blame if a pipeline stands still: the worker that neither works nor waits.
#include "trireme/parallel/peer_watch.hpp"

#include <gtest/gtest.h>

#include <array>
#include <latch>
#include <thread>

#include "trireme/base/error.hpp"
#include "trireme/comm/local/run_local.hpp"

namespace trireme::parallel {
namespace {

using namespace std::chrono_literals;
using Errors = std::array<std::string, 2>;

// Ranks 0 and 1 wait for a byte from the next one; rank 2 does something first. What the waits say.
Errors run_chain(std::chrono::duration<double> timeout, const std::function<void(PeerWatch&, std::latch&)>& first) {
  Errors errors;
  std::latch waits_are_over(2);
  comm::run_local(3, [&](comm::Communicator& world) {
    PeerWatch watch(world, timeout);
    const auto messages = world.split(0, world.rank());
    messages->set_timeout(timeout);
    messages->set_judge(watch.judge());
    std::byte byte{};
    if (world.rank() == 2) {
      first(watch, waits_are_over);
    } else {
      const PeerWatch::Waiting waiting(&watch);
      try {
        messages->receive({&byte, 1}, world.rank() + 1, 0);
      } catch (const Error& error) {
        errors[static_cast<std::size_t>(world.rank())] = error.what();
      }
      const bool has_failed = !errors[static_cast<std::size_t>(world.rank())].empty();
      waits_are_over.count_down();
      if (has_failed) waits_are_over.wait();  // until then the others see it wait
    }
    if (world.rank() > 0) messages->send({&byte, 1}, world.rank() - 1, 0);
  });
  return errors;
}

TEST(PeerWatch, NamesTheOneThatStandsStillAndNotTheOneThatWaitsForIt) {
  const Errors errors = run_chain(300ms, [](PeerWatch&, std::latch& waits_are_over) { waits_are_over.wait(); });
  EXPECT_NE(errors[0].find("receive of 1 B with rank 1 ("), std::string::npos) << errors[0];
  for (const std::string& error : errors) EXPECT_NE(error.find("; rank 2 ("), std::string::npos) << error;
}

TEST(PeerWatch, LetsAllWaitForOneThatWorks) {
  const Errors errors = run_chain(1s, [](PeerWatch& watch, std::latch&) {
    for (int i = 0; i < 30; ++i) {
      std::this_thread::sleep_for(100ms);
      watch.count();
    }
  });
  EXPECT_EQ(errors, Errors());
}

TEST(PeerWatch, EndsTheWaitForALostMessage) {
  const Errors errors = run_chain(200ms, [](PeerWatch& watch, std::latch& waits_are_over) {
    const PeerWatch::Waiting waiting(&watch);
    waits_are_over.wait();
  });
  for (const std::string& error : errors) EXPECT_NE(error.find("; the other side is"), std::string::npos) << error;
}

}  // namespace
}  // namespace trireme::parallel
