// The gradient of a 3x3 convolution's weights by the transposed form of Winograd's F(4x4, 3x3): diff_weights =
// Gᵀ[sum over tiles of (A diff_dst Aᵀ) ⊙ (Bᵀ src B)]G. Made by winograd_choice.cpp.
#pragma once

#include <cstdint>

#include "trireme/backend/onednn/winograd_tiles.hpp"
#include "trireme/graph/ops/common.hpp"

namespace trireme::onednn::winograd {

// Tiles are taken in blocks that stay in a cache; the sums over tiles are kept for every
// pair of 16 channels of src ("inner") and 16 of dst ("outer"), for all of them or for some of the outer ones at a
// time.
class WeightsGradient {
 public:
  using Arguments = GradientArguments;

  // pad: at the top and left of src; threads: the most that run() uses.
  WeightsGradient(const BlockedProblem& problem, op::Pair pad, int threads);
  std::int64_t scratch_bytes() const;
  void run(const Arguments& arguments) const;

 private:
  struct Range {
    std::int64_t begin, end;
  };
  void load_values(const Arguments& arguments, Range tiles, std::int64_t inner, float* values) const;
  void load_gradients(const Arguments& arguments, Range tiles, std::int64_t outer, float* gradients) const;
  void accumulate(std::int64_t count, const float* values, const float* gradients, bool add, float* sums) const;
  void accumulate_bias(std::int64_t count, const float* gradients, bool add, float* bias) const;
  float* weights_block(const Arguments& arguments, std::int64_t outer, std::int64_t inner) const;
  void run_by_tiles(const Arguments& arguments) const;
  void run_by_channels(const Arguments& arguments) const;

  BlockedProblem problem_;
  op::Pair pad_;
  Tiling tiles_;
  int threads_;
  bool by_tiles_ = true;         // each thread has its tiles and sums of its own; else its pairs of channels
  std::int64_t resident_ = 1;    // tiles whose transformed values are kept at once
  std::int64_t outer_pass_ = 1;  // blocks of outer channels whose sums are kept at once
  std::int64_t point_stride_ = 0,
               block_stride_ = 0;  // floats from one point, one block of transformed values to the next
  std::int64_t bias_at_ = 0, values_at_ = 0, gradients_at_ = 0, sums_at_ = 0;
  std::int64_t thread_floats_ = 0;  // by_tiles_: all of the above once per thread
  std::int64_t scratch_floats_ = 0;
};

}  // namespace trireme::onednn::winograd
