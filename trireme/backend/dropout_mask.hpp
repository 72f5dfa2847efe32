// Which elements dropout keeps in one run. Depends only on the run's seed, the operation, the step, the sample's index
// in the global batch and the row-major position in the sample, so all backends agree; cuda/dropout.cu repeats this.
#pragma once

#include <cstdint>

#include "trireme/base/random.hpp"
#include "trireme/graph/ops/elementwise.hpp"
#include "trireme/plan/backend.hpp"

namespace trireme {

class DropoutMask {
 public:
  // first_sample: of the kernel's, in the run.
  DropoutMask(const op::Dropout& dropout, const RunContext& context, std::int64_t first_sample,
              std::int64_t elements_per_sample)
      : rate_(dropout.rate),
        step_(context.step),
        first_sample_(context.sample_offset + first_sample),
        blocks_per_sample_((elements_per_sample + 3) / 4) {
    const RandomBlock mixed = philox(context.seed, dropout.key, 0);
    key_ = (std::uint64_t{mixed[0]} << 32) | mixed[1];
  }

  // Random bits for positions 4·block to 4·block + 3 of a sample of this process.
  RandomBlock bits(std::int64_t sample, std::int64_t block) const {
    return philox(key_, step_, static_cast<std::uint64_t>((first_sample_ + sample) * blocks_per_sample_ + block));
  }
  bool keeps(std::uint32_t bits_of_position) const { return to_unit(bits_of_position) >= rate_; }
  bool keeps(std::int64_t sample, std::int64_t position) const {
    return keeps(bits(sample, position / 4)[position % 4]);
  }
  float scale() const { return 1.0f / (1.0f - rate_); }

 private:
  float rate_;
  std::uint64_t key_ = 0;
  std::uint64_t step_;
  std::int64_t first_sample_;
  std::int64_t blocks_per_sample_;
};

}  // namespace trireme
