#include "trireme/data/sample_order.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/random.hpp"

namespace trireme::data {
namespace {

// Four are enough for large halves; halves of a few bits mix badly and need more.
constexpr std::uint64_t kRounds = 8;

}  // namespace

SampleOrder::SampleOrder(std::int64_t samples, std::uint64_t seed, bool shuffle)
    : samples_(samples), key_(random_key(seed, "sample order")), shuffle_(shuffle) {
  if (samples < 1) bad_input("cannot order {} samples: the data set is empty", samples);
  while (half_bits_ < 31 && (std::int64_t{1} << (2 * half_bits_)) < samples) ++half_bits_;
}

// A Feistel network: each round changes one half by a function of the other. That is invertible for any function, so
// the whole is a permutation of all values of two halves.
std::uint64_t SampleOrder::mixed(std::uint64_t epoch, std::uint64_t value) const {
  const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
  std::uint64_t left = value >> half_bits_, right = value & mask;
  for (std::uint64_t round = 0; round < kRounds; ++round) {
    const RandomBlock random = philox(key_, epoch, (round << 32) | right);
    const std::uint64_t changed = left ^ (random[0] & mask);
    left = right;
    right = changed;
  }
  return (left << half_bits_) | right;
}

std::int64_t SampleOrder::at(std::int64_t place) const {
  const auto epoch = static_cast<std::uint64_t>(place / samples_);
  auto value = static_cast<std::uint64_t>(place % samples_);
  if (!shuffle_) return static_cast<std::int64_t>(value);
  // There are up to four times as many values as samples. Cycle walking: remapping until the value is a sample maps
  // different samples to different ones.
  do {
    value = mixed(epoch, value);
  } while (value >= static_cast<std::uint64_t>(samples_));
  return static_cast<std::int64_t>(value);
}

}  // namespace trireme::data
