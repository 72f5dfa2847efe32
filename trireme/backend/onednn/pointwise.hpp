// Own 1x1 convolution for AVX-512, a product of matrices: the tiles of results stay in registers over a whole block of
// inner channels, and the values of the next ones are fetched while they are computed. Offered to the tuner by
// convolution.cpp beside the library's kernels; rounds like any direct sum.
#pragma once

#include <cstdint>
#include <span>

#include "trireme/backend/onednn/blocked_convolution.hpp"
#include "trireme/graph/ops/common.hpp"

namespace trireme::onednn::pointwise {

struct Range {
  std::int64_t begin = 0, end = 0;
  std::int64_t count() const { return end - begin; }
};
inline Range part(std::int64_t count, std::int64_t index, std::int64_t parts) {
  return {count * index / parts, count * (index + 1) / parts};
}

// How a grid of points lies on src and dst: the steps of src are larger than 1 in a convolution with a stride, those of
// dst in its gradient, where the values between the grid's points are zero.
struct Steps {
  op::Pair src{1, 1}, dst{1, 1};
};

// dst = activation(src times weights + bias + addend) at the points of a grid.
class Product {
 public:
  using Arguments = ConvolutionArguments;

  // threads: the most that run() uses.
  Product(const BlockedProblem& problem, const Steps& steps, int threads);
  std::int64_t scratch_bytes() const;
  void run(const Arguments& arguments) const;

 private:
  // Points of an image that make up the rows of a tile.
  struct Group {
    std::int64_t image, begin, rows;
  };
  // A group on its way through the panels: where its values are, its results (from the first channel on) go, and the
  // values of a later group that are fetched meanwhile lie.
  struct Work {
    Group group;
    const float* src;
    const float* next;
    std::int64_t at, next_rows;
  };
  // One thread's part, and where it keeps what it works on.
  struct Share {
    Range groups, panels;
    float* values;
    float* tile;
  };
  Group group(std::int64_t index) const;
  Share share(const Arguments& arguments) const;
  const float* point_of(const Arguments& arguments, const Group& group, std::int64_t row) const;
  void load_weights(const Arguments& arguments) const;
  void load_group(const Arguments& arguments, const Group& group, Range inner, float* values) const;
  void store_cells(const Arguments& arguments, const Group& group, Range outer, const float* tile) const;
  Work work(const Arguments& arguments, const Share& share, Range groups, std::int64_t index, Range inner) const;
  void multiply(const Arguments& arguments, const Share& share, std::span<const Work> works, std::int64_t panel,
                Range inner) const;

  BlockedProblem problem_;
  Steps steps_;
  int threads_;
  std::int64_t grid_height_, grid_width_;
  bool gathers_, scatters_;    // the grid's points do not lie side by side in src, dst
  std::int64_t image_groups_;  // per image
  std::int64_t groups_, panels_;
  std::int64_t inner_blocks_;  // that are summed at a time
  std::int64_t resident_ = 1;  // groups that a panel of weights is multiplied with before the next one comes
  std::int64_t weights_inner_, weights_outer_;  // strides of the weights as the product reads them
  std::int64_t bias_at_ = 0, weights_at_ = 0, threads_at_ = 0, tile_at_ = 0, thread_floats_ = 0;
};

// diff_weights = sum over all pixels of src times diff_dst, and diff_bias = sum of diff_dst.
class WeightsGradient {
 public:
  using Arguments = GradientArguments;

  // step: of src.
  WeightsGradient(const BlockedProblem& problem, op::Pair step, int threads);
  std::int64_t scratch_bytes() const;
  void run(const Arguments& arguments) const;

 private:
  // The same pixels of neighbouring images.
  struct Chunk {
    std::int64_t image, images, begin, pixels;
  };
  // 16 channels of a chunk, and the floats from one image to the next.
  struct Panel {
    const float* first;
    std::int64_t stride;
  };
  Chunk chunk(std::int64_t index) const;
  Panel values(const Arguments& arguments, const Chunk& chunk, std::int64_t inner) const;
  Panel gradients(const Arguments& arguments, const Chunk& chunk, std::int64_t outer) const;
  // The nth of the halves of the panels that lie between a chunk and these outer channels.
  Panel half(const Arguments& arguments, const Chunk& chunk, Range outer, std::int64_t nth) const;
  void gather(const Arguments& arguments, const Chunk& chunk, float* values) const;
  void accumulate(const Arguments& arguments, Range chunks, Range outer, float* values, float* sums) const;
  void multiply(const Arguments& arguments, const Chunk& chunk, const Chunk& next, Range outer, const float* gathered,
                bool add, float* sums) const;
  void add_up(const Arguments& arguments, std::int64_t threads) const;

  BlockedProblem problem_;
  op::Pair step_;
  int threads_;
  bool gathers_;                              // the pixels that were read do not lie side by side
  bool by_pixels_;                            // threads share pixels, and add their sums up; else outer channels
  std::int64_t images_, pixels_;              // most of a chunk
  std::int64_t image_chunks_, pixel_chunks_;  // their number along images and pixels
  std::int64_t sums_floats_, values_floats_, values_at_;
};

}  // namespace trireme::onednn::pointwise
