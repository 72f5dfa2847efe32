// The order of samples: an endless sequence of epochs, each a permutation of all samples that depends only on seed and
// epoch; computed, not stored. Ranks take shares of each global batch, so every sample comes exactly once per epoch for
// any number of ranks; a batch may span two epochs. A position suffices to resume.
#pragma once

#include <cstdint>

namespace trireme::data {

struct PositionRange {
  std::int64_t begin = 0, end = 0;
  bool operator==(const PositionRange&) const = default;
};

class SampleOrder {
 public:
  // Without shuffling every epoch is 0, 1, 2, ... Error(bad_input) if there are no samples.
  SampleOrder(std::int64_t samples, std::uint64_t seed, bool shuffle);

  std::int64_t samples() const { return samples_; }
  std::int64_t epoch(std::int64_t place) const { return place / samples_; }
  std::int64_t at(std::int64_t place) const;  // the sample at a position, from 0

 private:
  std::uint64_t mixed(std::uint64_t epoch, std::uint64_t value) const;

  std::int64_t samples_;
  std::uint64_t key_;
  bool shuffle_;
  int half_bits_ = 1;  // of the two halves that the permutation mixes
};

}  // namespace trireme::data
