#include "trireme/train/sample_ledger.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace trireme::train {
namespace {

using Ranges = std::vector<data::PositionRange>;

TEST(SampleLedger, WithoutLossesItCounts) {
  SampleLedger ledger;
  for (int i = 0; i < 3; ++i) ledger.commit({.batch = 5, .workers = 4, .runs = 2});
  EXPECT_EQ(ledger.next(), 120);
  EXPECT_EQ(ledger.used(), 120);
  EXPECT_EQ(ledger.done_before(), 120);
  EXPECT_TRUE(ledger.leftover().empty());
}

TEST(SampleLedger, TheBatchesOfTheLostAreLeftOver) {
  SampleLedger ledger;
  ledger.commit({.batch = 5, .workers = 4, .runs = 2}, std::array{1, 2});
  EXPECT_EQ(ledger.leftover(), (Ranges{{5, 15}, {25, 35}}));
  EXPECT_EQ(ledger.used(), 20);
  EXPECT_EQ(ledger.done_before(), 5);
  ledger.commit({.batch = 6, .workers = 2, .runs = 1});  // takes the first ones
  EXPECT_EQ(ledger.leftover(), (Ranges{{27, 35}}));
  EXPECT_EQ(ledger.done_before(), 27);
  ledger.commit({.batch = 5, .workers = 2, .runs = 1}, std::array{1});
  EXPECT_EQ(ledger.leftover(), (Ranges{{32, 35}, {40, 42}}));
  EXPECT_EQ(ledger.next(), 42);
}

// As pipelines hand them out: the leftovers, then what follows.
std::vector<std::int64_t> positions(const SampleLedger& ledger, std::int64_t count) {
  std::vector<std::int64_t> all;
  for (const data::PositionRange& range : ledger.leftover()) {
    for (std::int64_t at = range.begin; at < range.end; ++at) all.push_back(at);
  }
  for (std::int64_t at = ledger.next(); std::ssize(all) < count; ++at) all.push_back(at);
  all.resize(count);
  return all;
}

TEST(SampleLedger, EverySampleOnceWhateverIsLost) {
  std::mt19937 random(3);
  for (int round = 0; round < 50; ++round) {
    SampleLedger ledger;
    std::map<std::int64_t, int> times;
    int workers = 6;
    const auto batch = static_cast<std::int64_t>(1 + random() % 7);
    const int runs = 1 + static_cast<int>(random() % 3);
    while (workers > 0) {
      std::vector<int> lost;
      for (int rank = 0; rank < workers; ++rank) {
        if (random() % 8 == 0) lost.push_back(rank);
      }
      const auto given = positions(ledger, batch * workers * runs);
      for (std::size_t i = 0; i < given.size(); ++i) {
        const int rank = static_cast<int>(static_cast<std::int64_t>(i) / batch) % workers;
        if (std::ranges::find(lost, rank) == lost.end()) ++times[given[i]];
      }
      ledger.commit({.batch = batch, .workers = workers, .runs = runs}, lost);
      workers -= static_cast<int>(lost.size());
      ASSERT_EQ(ledger.used(), std::ssize(times));
      for (std::int64_t at = 0; at < ledger.done_before(); ++at) ASSERT_EQ(times[at], 1) << at;
      ASSERT_FALSE(times.contains(ledger.done_before()));
    }
    for (const auto& [position, count] : times) ASSERT_EQ(count, 1) << position;
  }
}

}  // namespace
}  // namespace trireme::train
