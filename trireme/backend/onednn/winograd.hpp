// Own convolution by Winograd's F(4x4, 3x3) for AVX-512, where the library's is bound by memory: it works on blocks of
// tiles whose transformed values stay in the cache. Offered to the tuner by convolution.cpp beside the library's
// kernels; rounds more than the direct sum does.
#pragma once

#include <cstdint>

#include "trireme/backend/onednn/winograd_tiles.hpp"
#include "trireme/graph/ops/common.hpp"

namespace trireme::onednn::winograd {

// dst = activation(convolution of src by 3x3 weights in steps of 1 + bias + addend).
class Forward {
 public:
  using Arguments = ConvolutionArguments;

  // pad: at the top and left of src; threads: the most that run() uses.
  Forward(const BlockedProblem& problem, op::Pair pad, int threads);
  std::int64_t scratch_bytes() const;
  void run(const Arguments& arguments) const;

 private:
  // Transformed weights of one or two blocks of outer channels: [point][inner channel][vectors·16].
  struct Panel {
    std::int64_t first_block;
    int vectors;
  };
  struct Groups {
    std::int64_t begin, end;
  };
  Panel panel(std::int64_t index) const;
  Tile input_tile(std::int64_t index) const;
  void load_group(const Arguments& arguments, std::int64_t group, std::int64_t block, float* values) const;
  void load_panel(const Arguments& arguments, const Panel& panel, std::int64_t block, float* weights) const;
  void multiply(const Arguments& arguments, const Panel& panel, const float* weights, const float* values,
                Groups groups, float* products) const;
  void run_by_tiles(const Arguments& arguments) const;
  void run_by_channels(const Arguments& arguments) const;

  BlockedProblem problem_;
  op::Pair pad_;
  Tiling tiles_;
  int threads_;
  int rows_ = 1;               // tiles of a group: rows of one product in registers
  std::int64_t groups_ = 0;    // of tiles
  std::int64_t block_ = 1;     // groups whose products are transformed back together
  std::int64_t resident_ = 1;  // groups whose transformed values are kept at once
  bool by_tiles_ = true;       // threads share tiles; else outer channels
  std::int64_t panels_ = 0;
  std::int64_t point_values_ = 0, group_values_ = 0;    // floats from one point, one group to the next
  std::int64_t point_weights_ = 0, panel_weights_ = 0;  // the same for points and panels of weights
  std::int64_t group_products_ = 0;
  std::int64_t bias_at_ = 0, weights_at_ = 0, values_at_ = 0, products_at_ = 0, scratch_floats_ = 0;
};

}  // namespace trireme::onednn::winograd
