#include "trireme/data/sample_order.hpp"

#include <gtest/gtest.h>

#include <array>
#include <set>
#include <vector>

#include "trireme/base/error.hpp"

namespace trireme::data {
namespace {

std::vector<std::int64_t> epoch_of(const SampleOrder& order, std::int64_t epoch) {
  std::vector<std::int64_t> samples;
  for (std::int64_t i = 0; i < order.samples(); ++i) samples.push_back(order.at(epoch * order.samples() + i));
  return samples;
}

bool has_each_once(const std::vector<std::int64_t>& samples) {
  std::vector<bool> seen(samples.size(), false);
  for (const std::int64_t sample : samples) {
    if (sample < 0 || sample >= std::ssize(samples)) return false;
    if (seen[sample]) return false;
    seen[sample] = true;
  }
  return true;
}

TEST(SampleOrder, EveryEpochHasEachSampleOnce) {
  std::vector<std::int64_t> sizes;
  for (std::int64_t size = 1; size <= 70; ++size) sizes.push_back(size);
  for (const std::int64_t size : {255, 256, 257, 1023, 4096, 4097, 50'000, 99'991}) sizes.push_back(size);
  for (const std::int64_t size : sizes) {
    const SampleOrder order(size, 7, true);
    for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
      EXPECT_TRUE(has_each_once(epoch_of(order, epoch))) << size << " samples, epoch " << epoch;
    }
  }
}

TEST(SampleOrder, VeryLargeSetsHaveTheirSamplesInRangeAndNoneTwice) {
  for (const std::int64_t size : {1'281'167ll, (1ll << 40) + 1, (1ll << 62)}) {
    const SampleOrder order(size, 1, true);
    std::set<std::int64_t> seen;
    for (std::int64_t place = 0; place < 2000; ++place) {
      const std::int64_t sample = order.at(place);
      EXPECT_GE(sample, 0);
      EXPECT_LT(sample, size);
      EXPECT_TRUE(seen.insert(sample).second) << sample << " twice";
    }
  }
}

TEST(SampleOrder, DependsOnSeedAndEpochAlone) {
  const SampleOrder order(1000, 5, true);
  EXPECT_EQ(epoch_of(order, 4), epoch_of(SampleOrder(1000, 5, true), 4));
  EXPECT_NE(epoch_of(order, 0), epoch_of(order, 1));
  EXPECT_NE(epoch_of(order, 0), epoch_of(SampleOrder(1000, 6, true), 0));
  EXPECT_EQ(order.epoch(999), 0);
  EXPECT_EQ(order.epoch(1000), 1);
}

TEST(SampleOrder, WithoutShufflingSamplesComeInTheirOrder) {
  const SampleOrder order(5, 1, false);
  EXPECT_EQ(epoch_of(order, 0), (std::vector<std::int64_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(order.at(7), 2);
}

// Over many epochs each sample comes to each place about equally often: chi-square with 99 % bounds over a fixed seed.
TEST(SampleOrder, EverySampleComesToEveryPlaceEquallyOften) {
  constexpr std::int64_t kSize = 10, kEpochs = 10'000;
  std::array<std::array<double, kSize>, kSize> counts{};
  const SampleOrder order(kSize, 3, true);
  for (std::int64_t place = 0; place < kSize * kEpochs; ++place) {
    ++counts[place % kSize][order.at(place)];
  }
  constexpr double kExpected = static_cast<double>(kEpochs) / kSize;
  double chi_square = 0;
  for (const auto& row : counts) {
    for (const double count : row) chi_square += (count - kExpected) * (count - kExpected) / kExpected;
  }
  // 81 degrees of freedom.
  EXPECT_GT(chi_square, 51);
  EXPECT_LT(chi_square, 117);
}

// All orders of three samples occur about equally often.
TEST(SampleOrder, EveryOrderOccurs) {
  std::array<int, 27> counts{};
  const SampleOrder order(3, 11, true);
  for (std::int64_t epoch = 0; epoch < 6000; ++epoch) {
    const auto samples = epoch_of(order, epoch);
    ++counts[9 * samples[0] + 3 * samples[1] + samples[2]];
  }
  int orders = 0;
  for (const int count : counts) {
    if (count == 0) continue;
    ++orders;
    EXPECT_NEAR(count, 1000, 120);
  }
  EXPECT_EQ(orders, 6);
}

// Neighbours in the data set, often of one class, are not neighbours in the order.
TEST(SampleOrder, NeighboursAreTornApart) {
  constexpr std::int64_t kSize = 10'000;
  const auto samples = epoch_of(SampleOrder(kSize, 1, true), 0);
  double distance = 0;
  int adjacent = 0;
  for (std::size_t i = 1; i < samples.size(); ++i) {
    const auto step = std::abs(samples[i] - samples[i - 1]);
    distance += static_cast<double>(step) / kSize;
    adjacent += step == 1 ? 1 : 0;
  }
  EXPECT_NEAR(distance / kSize, 1.0 / 3, 0.01);  // the mean distance of two random numbers
  EXPECT_LT(adjacent, 12);                       // two expected
}

TEST(SampleOrder, NoSamplesIsAnError) { EXPECT_THROW(SampleOrder(0, 1, true), Error); }

}  // namespace
}  // namespace trireme::data
