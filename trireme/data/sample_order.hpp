// The order in which samples are taken: a sequence without end, epoch after epoch, each a permutation of all samples
// that depends on the seed and the epoch alone. Ranks take their parts of each global batch from it, so that every
// sample comes exactly once in each epoch, whatever the number of ranks; a batch may reach from one epoch into the
// next. A place in the sequence is all that is needed to go on from there. Nothing is stored: the permutation is
// computed.
#pragma once

#include <cstdint>

namespace trireme::data {

class SampleOrder {
 public:
  // Without shuffling every epoch is 0, 1, 2, ... Error(bad_input) where there are no samples.
  SampleOrder(std::int64_t samples, std::uint64_t seed, bool shuffle);

  std::int64_t samples() const { return samples_; }
  std::int64_t epoch(std::int64_t place) const { return place / samples_; }
  // The sample at this place of the sequence, from 0 on.
  std::int64_t at(std::int64_t place) const;

 private:
  std::uint64_t mixed(std::uint64_t epoch, std::uint64_t value) const;

  std::int64_t samples_;
  std::uint64_t key_;
  bool shuffle_;
  int half_bits_ = 1;  // of the two halves that the permutation mixes
};

}  // namespace trireme::data
