#include <gtest/gtest.h>

#include "trireme/plan/passes.hpp"

namespace trireme {
namespace {

// A program made by hand: buffers by size, instructions by what they read and write.
class MemoryTest : public testing::Test {
 protected:
  int buffer(std::int64_t bytes) {
    program.buffers.push_back({.desc = {DataType::f32, Shape{bytes / 4}, Layout::plain(1)}, .bytes = bytes});
    return static_cast<int>(program.buffers.size()) - 1;
  }
  void instruction(std::vector<int> inputs, std::vector<int> outputs,
                   std::vector<std::pair<int, int>> in_place_pairs = {}) {
    Instruction added;
    added.inputs = std::move(inputs);
    added.outputs = std::move(outputs);
    program.instructions.push_back(std::move(added));
    in_place.push_back(std::move(in_place_pairs));
  }
  MemorySummary plan(CompileOptions options = {}) { return program.memory = plan_memory(program, in_place, options); }

  // Buffers that are alive together must not overlap.
  void expect_disjoint() {
    for (const Buffer& a : program.buffers) {
      for (const Buffer& b : program.buffers) {
        if (&a >= &b || a.shares >= 0 || b.shares >= 0 || a.first > b.last || b.first > a.last) continue;
        EXPECT_TRUE(a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset);
      }
    }
  }

  Program program;
  InPlacePairs in_place;
};

TEST_F(MemoryTest, AChainNeedsTwoBuffers) {
  std::vector<int> chain;
  for (int i = 0; i < 10; ++i) chain.push_back(buffer(1024));
  instruction({}, {chain[0]});
  for (std::size_t i = 1; i < chain.size(); ++i) instruction({chain[i - 1]}, {chain[i]});
  program.fetches = {chain.back()};
  const MemorySummary summary = plan();
  EXPECT_EQ(summary.planned_bytes, 2048);
  EXPECT_EQ(summary.peak_live_bytes, 2048);
  EXPECT_EQ(summary.unplanned_bytes, 10240);
  expect_disjoint();
}

TEST_F(MemoryTest, InPlaceHalvesAChain) {
  const int a = buffer(1024), b = buffer(1024);
  instruction({}, {a});
  instruction({a}, {b}, {{0, 0}});
  program.fetches = {b};
  EXPECT_EQ(plan().planned_bytes, 1024);
  EXPECT_EQ(program.buffers[b].shares, a);
}

TEST_F(MemoryTest, NothingIsOverwrittenThatIsReadLaterOrFetchedOrFed) {
  const int fed = buffer(64), read_later = buffer(64), fetched = buffer(64), out1 = buffer(64), out2 = buffer(64),
            out3 = buffer(64);
  program.placeholders[0] = fed;
  instruction({fed}, {out1}, {{0, 0}});
  instruction({}, {read_later});
  instruction({read_later}, {out2}, {{0, 0}});
  instruction({read_later}, {fetched});
  instruction({fetched}, {out3}, {{0, 0}});
  program.fetches = {fetched};
  plan();
  for (const int id : {out1, out2, out3}) EXPECT_EQ(program.buffers[id].shares, -1);
  expect_disjoint();
}

TEST_F(MemoryTest, AnInputReadTwiceByOneInstructionIsNotOverwritten) {
  const int a = buffer(64), b = buffer(64);
  instruction({}, {a});
  instruction({a, a}, {b}, {{0, 0}});
  plan();
  EXPECT_EQ(program.buffers[b].shares, -1);
}

TEST_F(MemoryTest, TwoOutputsDoNotShareOneInput) {
  const int a = buffer(64), b = buffer(64), c = buffer(64);
  instruction({}, {a});
  instruction({a}, {b, c}, {{0, 0}, {0, 1}});
  plan();
  EXPECT_TRUE(program.buffers[b].shares == -1 || program.buffers[c].shares == -1);
}

TEST_F(MemoryTest, ResultsOfInstructionsThatRunOnceLiveThroughTheProgram) {
  const int once = buffer(64), later = buffer(64), out = buffer(64);
  instruction({}, {once});
  program.instructions.back().once = true;
  instruction({once}, {later});
  instruction({later}, {out});
  plan();
  EXPECT_EQ(program.buffers[once].last, 3);
  expect_disjoint();
}

TEST_F(MemoryTest, WithoutPlanningEveryBufferHasItsOwn) {
  const int a = buffer(64), b = buffer(64), c = buffer(64);
  instruction({}, {a});
  instruction({a}, {b}, {{0, 0}});
  instruction({b}, {c}, {{0, 0}});
  CompileOptions options;
  options.plan_memory = false;
  EXPECT_EQ(plan(options).planned_bytes, 192);
}

}  // namespace
}  // namespace trireme
