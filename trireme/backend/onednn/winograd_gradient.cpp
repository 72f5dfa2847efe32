#include <omp.h>

#include <algorithm>

#include "trireme/backend/onednn/blocked_choice.hpp"
#include "trireme/backend/onednn/winograd_kernels.hpp"
#include "trireme/backend/onednn/winograd_transform.hpp"

namespace trireme::onednn::winograd {
namespace {

constexpr std::int64_t kFloat = sizeof(float);
constexpr std::int64_t kOwnSums = 3 << 20;         // bytes of sums up to which every thread has its own
constexpr std::int64_t kCacheOfCore = 1536 << 10;  // bytes of transformed values that a thread works on
constexpr std::int64_t kCacheOfAll = 20 << 20;     // the same if all threads share them
constexpr std::int64_t kSumsOfAll = 20 << 20;      // bytes of sums that stay in the shared cache with these
constexpr std::int64_t kPairFloats = kPoints * kLanes * kLanes;  // sums of a pair of channel blocks
constexpr std::int64_t kSumPoint = kInput + 1;  // the point that holds the sum of a transformed gradient's values

// The gradient of a 3x3 convolution's weights by the transposed F(4x4, 3x3): diff_weights = Gᵀ[sum over tiles of (A
// diff_dst Aᵀ) ⊙ (Bᵀ src B)]G. Works on blocks of tiles that stay in a cache; sums are kept for every pair of 16
// channels of src ("inner") and 16 of dst ("outer"), for all outer ones or some at a time.
class WeightsGradient {
 public:
  using Arguments = GradientArguments;

  // pad: at the top and left of src; threads: the most that run() uses.
  WeightsGradient(const BlockedProblem& problem, op::Pair pad, int threads)
      : problem_(problem), pad_(pad), tiles_(problem.dst), threads_(threads) {
    const std::int64_t inner = problem_.src.blocks, outer = problem_.dst.blocks, count = tiles_.count();
    by_tiles_ = inner * outer * kPairFloats * kFloat <= kOwnSums;
    const auto fitting = [&](std::int64_t bytes, std::int64_t outer_blocks, std::int64_t most) {
      const std::int64_t tile_bytes = kPoints * kLanes * kFloat * (inner + outer_blocks);
      const std::int64_t tiles = std::clamp<std::int64_t>(bytes / tile_bytes, 8, most);
      return ceil_div(most, ceil_div(most, tiles));
    };
    outer_pass_ = outer;
    if (by_tiles_) {
      resident_ = fitting(kCacheOfCore, outer, std::max<std::int64_t>(8, ceil_div(count, threads_)));
    } else {
      resident_ = fitting(kCacheOfAll, outer, std::max<std::int64_t>(8, count));
      if (resident_ < count) {
        const std::int64_t fits = std::max<std::int64_t>(1, kSumsOfAll / (inner * kPairFloats * kFloat));
        outer_pass_ = ceil_div(outer, ceil_div(outer, fits));
        resident_ = fitting(kCacheOfAll, outer_pass_, count);
      }
    }
    // An odd number of cache lines, so that the points of a tile do not fall into the same sets.
    point_stride_ = (resident_ | 1) * kLanes;
    block_stride_ = kPoints * point_stride_;
    values_at_ = bias_at_ + outer * kLanes;
    gradients_at_ = values_at_ + inner * block_stride_;
    sums_at_ = gradients_at_ + outer_pass_ * block_stride_;
    // With all tiles at once, sums go on to the weights right away.
    const std::int64_t pairs = !by_tiles_ && resident_ >= count ? threads_ : inner * outer_pass_;
    thread_floats_ = sums_at_ + pairs * kPairFloats;
    scratch_floats_ = by_tiles_ ? threads_ * thread_floats_ : thread_floats_;
  }

  std::int64_t scratch_bytes() const { return scratch_floats_ * kFloat; }

  void run(const Arguments& arguments) const {
    const int threads = std::min(threads_, omp_get_max_threads());
#pragma omp parallel num_threads(threads)
    {
      if (by_tiles_) {
        run_by_tiles(arguments);
      } else {
        run_by_channels(arguments);
      }
    }
  }

 private:
  struct Range {
    std::int64_t begin, end;
  };

  void load_values(const Arguments& arguments, Range tiles, std::int64_t inner, float* values) const {
    for (std::int64_t i = tiles.begin; i < tiles.end; ++i) {
      Tile tile = tiles_[i];
      tile.row -= pad_[0];
      tile.column -= pad_[1];
      load_input(problem_.src, arguments.src, tile, inner, values + (i - tiles.begin) * kLanes, point_stride_);
    }
  }

  void load_gradients(const Arguments& arguments, Range tiles, std::int64_t outer, float* gradients) const {
    for (std::int64_t i = tiles.begin; i < tiles.end; ++i) {
      load_gradient(problem_.dst, arguments.diff_dst, tiles_[i], outer, gradients + (i - tiles.begin) * kLanes,
                    point_stride_);
    }
  }

  void accumulate(std::int64_t count, const float* values, const float* gradients, bool add, float* sums) const {
    const float* const rows = problem_.weights.rows_are_inner ? values : gradients;
    const float* const columns = problem_.weights.rows_are_inner ? gradients : values;
    for (std::int64_t point = 0; point < kPoints; ++point) {
      block_product(count, rows + point * point_stride_, columns + point * point_stride_, add,
                    sums + point * kLanes * kLanes);
    }
  }

  void accumulate_bias(std::int64_t count, const float* gradients, bool add, float* bias) const {
    if (problem_.bias_channels > 0) sum_vectors(count, gradients + kSumPoint * point_stride_, add, bias);
  }

  float* weights_block(const Arguments& arguments, std::int64_t outer, std::int64_t inner) const {
    return arguments.diff_weights + outer * problem_.weights.outer_stride + inner * problem_.weights.inner_stride;
  }

  void run_by_tiles(const Arguments& arguments) const {
    const std::int64_t inner_blocks = problem_.src.blocks, outer_blocks = problem_.dst.blocks;
    const std::int64_t thread = omp_get_thread_num(), threads = omp_get_num_threads();
    float* const own = arguments.scratch + thread * thread_floats_;
    const Range mine{tiles_.count() * thread / threads, tiles_.count() * (thread + 1) / threads};
    // A thread without tiles contributes empty sums.
    for (std::int64_t begin = mine.begin; begin == mine.begin || begin < mine.end; begin += resident_) {
      const Range tiles{begin, std::min(begin + resident_, mine.end)};
      const std::int64_t count = tiles.end - tiles.begin;
      const bool add = begin > mine.begin;
      for (std::int64_t inner = 0; inner < inner_blocks; ++inner) {
        load_values(arguments, tiles, inner, own + values_at_ + inner * block_stride_);
      }
      for (std::int64_t outer = 0; outer < outer_blocks; ++outer) {
        float* const gradients = own + gradients_at_ + outer * block_stride_;
        load_gradients(arguments, tiles, outer, gradients);
        accumulate_bias(count, gradients, add, own + bias_at_ + outer * kLanes);
        for (std::int64_t inner = 0; inner < inner_blocks; ++inner) {
          accumulate(count, own + values_at_ + inner * block_stride_, gradients, add,
                     own + sums_at_ + (outer * inner_blocks + inner) * kPairFloats);
        }
      }
    }
#pragma omp barrier
#pragma omp for collapse(2) schedule(static)
    for (std::int64_t outer = 0; outer < outer_blocks; ++outer) {
      for (std::int64_t inner = 0; inner < inner_blocks; ++inner) {
        store_weights_gradient(arguments.scratch + sums_at_ + (outer * inner_blocks + inner) * kPairFloats, threads,
                               thread_floats_, weights_block(arguments, outer, inner));
      }
    }
#pragma omp for schedule(static)
    for (std::int64_t i = 0; i < problem_.bias_channels; ++i) {
      float sum = 0;
      for (std::int64_t t = 0; t < threads; ++t) sum += arguments.scratch[t * thread_floats_ + bias_at_ + i];
      arguments.diff_bias[i] = sum;
    }
  }

  void run_by_channels(const Arguments& arguments) const {
    const std::int64_t inner_blocks = problem_.src.blocks;
    float* const values = arguments.scratch + values_at_;
    float* const bias = arguments.scratch + bias_at_;
    const bool at_once = resident_ >= tiles_.count();
    for (std::int64_t first = 0; first < problem_.dst.blocks; first += outer_pass_) {
      const std::int64_t last = std::min(first + outer_pass_, problem_.dst.blocks);
      for (std::int64_t begin = 0; begin < tiles_.count(); begin += resident_) {
        const Range tiles{begin, std::min(begin + resident_, tiles_.count())};
        const std::int64_t count = tiles.end - tiles.begin;
#pragma omp for schedule(static) nowait
        for (std::int64_t inner = 0; inner < inner_blocks; ++inner) {
          load_values(arguments, tiles, inner, values + inner * block_stride_);
        }
#pragma omp for schedule(static)
        for (std::int64_t outer = first; outer < last; ++outer) {
          float* const gradients = arguments.scratch + gradients_at_ + (outer - first) * block_stride_;
          load_gradients(arguments, tiles, outer, gradients);
          accumulate_bias(count, gradients, begin > 0, bias + outer * kLanes);
        }
#pragma omp for collapse(2) schedule(static)
        for (std::int64_t outer = first; outer < last; ++outer) {
          for (std::int64_t inner = 0; inner < inner_blocks; ++inner) {
            const std::int64_t pair = at_once ? omp_get_thread_num() : (outer - first) * inner_blocks + inner;
            float* const sums = arguments.scratch + sums_at_ + pair * kPairFloats;
            accumulate(count, values + inner * block_stride_,
                       arguments.scratch + gradients_at_ + (outer - first) * block_stride_, begin > 0, sums);
            if (tiles.end == tiles_.count()) store_weights_gradient(sums, 1, 0, weights_block(arguments, outer, inner));
          }
        }
      }
    }
#pragma omp for schedule(static)
    for (std::int64_t i = 0; i < problem_.bias_channels; ++i) arguments.diff_bias[i] = bias[i];
  }

  BlockedProblem problem_;
  op::Pair pad_;
  Tiling tiles_;
  int threads_;
  bool by_tiles_ = true;         // threads have their own tiles and sums; else their own pairs of channels
  std::int64_t resident_ = 1;    // tiles whose transformed values are kept at once
  std::int64_t outer_pass_ = 1;  // blocks of outer channels whose sums are kept at once
  std::int64_t point_stride_ = 0,
               block_stride_ = 0;  // floats between points, between blocks of transformed values
  std::int64_t bias_at_ = 0, values_at_ = 0, gradients_at_ = 0, sums_at_ = 0;
  std::int64_t thread_floats_ = 0;  // if by_tiles_: all of the above, per thread
  std::int64_t scratch_floats_ = 0;
};

}  // namespace

KernelChoice choice(const op::ConvolutionBackwardWeights& operation, const KernelRequest& request,
                    const OwnLayouts& layouts) {
  return blocked_choice(kImplementation, operation, request, layouts, [&](const BlockedProblem& problem, int threads) {
    return WeightsGradient(problem, operation.window.pad_before, threads);
  });
}

}  // namespace trireme::onednn::winograd
