// The random numbers of one drawn sample, in sequence.
#pragma once

#include <cstdint>

#include "trireme/base/random.hpp"

namespace trireme::data {

class Draws {
 public:
  Draws(std::uint64_t key, std::int64_t sample) : key_(key), sample_(sample) {}

  float between(float low, float high) { return low + (high - low) * to_unit(next()); }
  int below(int limit) { return static_cast<int>(next() % static_cast<std::uint32_t>(limit)); }
  // Approximately normal: the sum of four uniform draws.
  float around(float mean, float deviation) {
    const float sum = between(-1, 1) + between(-1, 1) + between(-1, 1) + between(-1, 1);
    return mean + deviation * sum * 0.866f;
  }

 private:
  std::uint32_t next() {
    if (used_ == block_.size()) {
      block_ = philox(key_, sample_, count_++);
      used_ = 0;
    }
    return block_[used_++];
  }

  std::uint64_t key_, sample_, count_ = 0;
  RandomBlock block_{};
  std::size_t used_ = block_.size();
};

}  // namespace trireme::data
