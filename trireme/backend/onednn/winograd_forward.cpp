#include <omp.h>

#include <algorithm>
#include <limits>

#include "trireme/backend/onednn/blocked_choice.hpp"
#include "trireme/backend/onednn/winograd_kernels.hpp"
#include "trireme/backend/onednn/winograd_transform.hpp"

namespace trireme::onednn::winograd {
namespace {

// Transformed weights up to this many bytes are kept. Larger ones would come from memory for every block of tiles; they
// are made again from the weights, which are a quarter of the size.
constexpr std::int64_t kKeptWeights = 12 << 20;
constexpr std::int64_t kCacheOfCore = 384 << 10;    // bytes of transformed values that a thread keeps
constexpr std::int64_t kCacheOfAll = 12 << 20;      // the same if all threads share them
constexpr std::int64_t kBlockProducts = 384 << 10;  // bytes of products that wait to be transformed back
constexpr std::int64_t kFloat = sizeof(float);

// An odd number of cache lines, so that the points of a tile do not fall into the same sets.
std::int64_t odd_lines(std::int64_t floats) { return (floats / kLanes | 1) * kLanes; }

// Rows per group that finish first with `shares` threads of whole groups each; large groups need fewer loads.
int rows_for(std::int64_t tiles, std::int64_t shares) {
  int best = 1;
  double least = std::numeric_limits<double>::max();
  for (int rows = 1; rows <= kMaxRows; ++rows) {
    const double time = static_cast<double>(ceil_div(ceil_div(tiles, rows), shares)) * (rows + 0.5);
    if (time <= least) {
      least = time;
      best = rows;
    }
  }
  return best;
}

// dst = activation(3x3 convolution of src with stride 1 + bias + addend).
class Forward {
 public:
  using Arguments = ConvolutionArguments;

  // pad: at the top and left of src; threads: the most that run() uses.
  Forward(const BlockedProblem& problem, op::Pair pad, int threads)
      : problem_(problem), pad_(pad), tiles_(problem.dst), threads_(threads) {
    const std::int64_t inner = problem_.src.blocks, outer = problem_.dst.blocks;
    panels_ = ceil_div(outer, kMaxVectors);
    point_weights_ = odd_lines(inner * kLanes * kMaxVectors * kLanes);
    panel_weights_ = kPoints * point_weights_;
    const std::int64_t all_weights = panels_ * panel_weights_;

    const int rows_by_tiles = rows_for(tiles_.count(), threads_);
    const double time_by_tiles = static_cast<double>(ceil_div(ceil_div(tiles_.count(), rows_by_tiles), threads_) *
                                                     (rows_by_tiles + 1) * panels_);
    const int rows_by_channels = rows_for(tiles_.count(), 1);
    const double time_by_channels = static_cast<double>(ceil_div(tiles_.count(), rows_by_channels) *
                                                        (rows_by_channels + 1) * ceil_div(panels_, threads_));
    const bool large = all_weights * kFloat > kKeptWeights;
    by_tiles_ = large ? time_by_tiles < 0.8 * time_by_channels : time_by_tiles <= 1.2 * time_by_channels;
    rows_ = by_tiles_ ? rows_by_tiles : rows_by_channels;
    groups_ = ceil_div(tiles_.count(), rows_);

    point_values_ = odd_lines(inner * rows_ * kLanes);
    group_values_ = kPoints * point_values_;
    group_products_ = kPoints * rows_ * kMaxVectors * kLanes;
    const std::int64_t share = by_tiles_ ? ceil_div(groups_, threads_) : groups_;
    const auto fitting = [&](std::int64_t bytes, std::int64_t floats) {
      return std::clamp<std::int64_t>(bytes / (floats * kFloat), 1, share);
    };
    resident_ = fitting(by_tiles_ ? kCacheOfCore : kCacheOfAll, group_values_);
    resident_ = ceil_div(share, ceil_div(share, resident_));
    block_ = std::min(resident_, fitting(kBlockProducts, group_products_));

    weights_at_ = bias_at_ + outer * kLanes;
    values_at_ = weights_at_ + (by_tiles_ ? all_weights : threads_ * panel_weights_);
    products_at_ = values_at_ + (by_tiles_ ? threads_ : 1) * resident_ * group_values_;
    scratch_floats_ = products_at_ + threads_ * block_ * group_products_;
  }

  std::int64_t scratch_bytes() const { return scratch_floats_ * kFloat; }

  void run(const Arguments& arguments) const {
    Arguments padded = arguments;
    if (problem_.bias_channels > 0) {
      float* const bias = arguments.scratch + bias_at_;
      std::copy_n(arguments.bias, problem_.bias_channels, bias);
      std::fill(bias + problem_.bias_channels, bias + problem_.dst.blocks * kLanes, 0.0f);
      padded.bias = bias;
    }
    const int threads = std::min(threads_, omp_get_max_threads());
#pragma omp parallel num_threads(threads)
    {
      if (by_tiles_) {
        run_by_tiles(padded);
      } else {
        run_by_channels(padded);
      }
    }
  }

 private:
  // Transformed weights of one or two blocks of outer channels: [point][inner channel][vectors·16].
  struct Panel {
    std::int64_t first_block;
    int vectors;
  };
  struct Groups {
    std::int64_t begin, end;
  };

  Panel panel(std::int64_t index) const {
    const std::int64_t first = index * kMaxVectors;
    return {first, static_cast<int>(std::min<std::int64_t>(kMaxVectors, problem_.dst.blocks - first))};
  }

  Tile input_tile(std::int64_t index) const {
    Tile tile = tiles_[index];
    tile.row -= pad_[0];
    tile.column -= pad_[1];
    return tile;
  }

  void load_group(const Arguments& arguments, std::int64_t group, std::int64_t block, float* values) const {
    const std::int64_t count = std::min<std::int64_t>(rows_, tiles_.count() - group * rows_);
    for (std::int64_t row = 0; row < count; ++row) {
      load_input(problem_.src, arguments.src, input_tile(group * rows_ + row), block,
                 values + (block * rows_ + row) * kLanes, point_values_);
    }
  }

  void load_panel(const Arguments& arguments, const Panel& panel, std::int64_t block, float* weights) const {
    const WeightsOrder& order = problem_.weights;
    const std::int64_t width = panel.vectors * kLanes;
    for (int n = 0; n < panel.vectors; ++n) {
      const float* from = arguments.weights + (panel.first_block + n) * order.outer_stride + block * order.inner_stride;
      load_weights(order, from, weights + block * kLanes * width + n * kLanes, point_weights_, width);
    }
  }

  void multiply(const Arguments& arguments, const Panel& panel, const float* weights, const float* values,
                Groups groups, float* products) const {
    const RowProduct product = row_product(rows_, panel.vectors);
    const std::int64_t width = panel.vectors * kLanes, point_products = rows_ * width;
    for (std::int64_t point = 0; point < kPoints; ++point) {
      for (std::int64_t g = 0; g < groups.end - groups.begin; ++g) {
        product(problem_.src.blocks, values + g * group_values_ + point * point_values_,
                weights + point * point_weights_, products + g * group_products_ + point * point_products);
      }
    }
    const Epilogue epilogue{.bias = arguments.bias, .addend = arguments.addend, .relu = problem_.relu};
    for (std::int64_t group = groups.begin; group < groups.end; ++group) {
      const float* const from = products + (group - groups.begin) * group_products_;
      const std::int64_t count = std::min<std::int64_t>(rows_, tiles_.count() - group * rows_);
      for (std::int64_t row = 0; row < count; ++row) {
        const Tile tile = tiles_[group * rows_ + row];
        for (int n = 0; n < panel.vectors; ++n) {
          store_output(problem_.dst, tile, panel.first_block + n, from + row * width + n * kLanes, point_products,
                       epilogue, arguments.dst);
        }
      }
    }
  }

  void run_by_tiles(const Arguments& arguments) const {
    float* const weights = arguments.scratch + weights_at_;
#pragma omp for collapse(2) schedule(static)
    for (std::int64_t p = 0; p < panels_; ++p) {
      for (std::int64_t block = 0; block < problem_.src.blocks; ++block) {
        load_panel(arguments, panel(p), block, weights + p * panel_weights_);
      }
    }
    const int thread = omp_get_thread_num();
    float* const values = arguments.scratch + values_at_ + thread * resident_ * group_values_;
    float* const products = arguments.scratch + products_at_ + thread * block_ * group_products_;
    const std::int64_t threads = omp_get_num_threads();
    const std::int64_t end = groups_ * (thread + 1) / threads;
    for (std::int64_t first = groups_ * thread / threads; first < end; first += resident_) {
      const std::int64_t last = std::min(first + resident_, end);
      for (std::int64_t group = first; group < last; ++group) {
        for (std::int64_t block = 0; block < problem_.src.blocks; ++block) {
          load_group(arguments, group, block, values + (group - first) * group_values_);
        }
      }
      for (std::int64_t p = 0; p < panels_; ++p) {
        for (std::int64_t begin = first; begin < last; begin += block_) {
          multiply(arguments, panel(p), weights + p * panel_weights_, values + (begin - first) * group_values_,
                   {begin, std::min(begin + block_, last)}, products);
        }
      }
    }
  }

  void run_by_channels(const Arguments& arguments) const {
    const int thread = omp_get_thread_num();
    float* const weights = arguments.scratch + weights_at_ + thread * panel_weights_;
    float* const values = arguments.scratch + values_at_;
    float* const products = arguments.scratch + products_at_ + thread * block_ * group_products_;
    for (std::int64_t first = 0; first < groups_; first += resident_) {
      const std::int64_t last = std::min(first + resident_, groups_);
#pragma omp for collapse(2) schedule(static)
      for (std::int64_t group = first; group < last; ++group) {
        for (std::int64_t block = 0; block < problem_.src.blocks; ++block) {
          load_group(arguments, group, block, values + (group - first) * group_values_);
        }
      }
#pragma omp for schedule(dynamic)
      for (std::int64_t p = 0; p < panels_; ++p) {
        for (std::int64_t block = 0; block < problem_.src.blocks; ++block) {
          load_panel(arguments, panel(p), block, weights);
        }
        for (std::int64_t begin = first; begin < last; begin += block_) {
          multiply(arguments, panel(p), weights, values + (begin - first) * group_values_,
                   {begin, std::min(begin + block_, last)}, products);
        }
      }
    }
  }

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
  std::int64_t point_values_ = 0, group_values_ = 0;    // floats between points, between groups
  std::int64_t point_weights_ = 0, panel_weights_ = 0;  // the same for points and panels of weights
  std::int64_t group_products_ = 0;
  std::int64_t bias_at_ = 0, weights_at_ = 0, values_at_ = 0, products_at_ = 0, scratch_floats_ = 0;
};

}  // namespace

bool possible(const op::Window& window, std::int64_t groups, const OwnLayouts& layouts) {
  constexpr op::Pair kThree{3, 3}, kOne{1, 1};
  const auto padded = [](const op::Pair& pad) { return pad[0] <= 2 && pad[1] <= 2; };
  return blocked_possible(groups, layouts) && window.kernel == kThree && window.stride == kOne &&
         window.dilation == kOne && padded(window.pad_before) && padded(window.pad_after);
}

KernelChoice choice(const op::Convolution& operation, const KernelRequest& request, const OwnLayouts& layouts) {
  return blocked_choice(kImplementation, operation, request, layouts, [&](const BlockedProblem& problem, int threads) {
    return Forward(problem, operation.window.pad_before, threads);
  });
}

KernelChoice choice(const op::ConvolutionBackwardData& operation, const KernelRequest& request,
                    const OwnLayouts& layouts) {
  // The same sum with activations swapped: a value of diff_src depends on the 3x3 values of diff_dst that it went into.
  const op::Pair pad{2 - operation.window.pad_before[0], 2 - operation.window.pad_before[1]};
  return blocked_choice(kImplementation, operation, request, layouts,
                        [&](const BlockedProblem& problem, int threads) { return Forward(problem, pad, threads); });
}

}  // namespace trireme::onednn::winograd
