#include <omp.h>

#include <algorithm>
#include <array>
#include <limits>

#include "trireme/backend/onednn/block_transpose.hpp"
#include "trireme/backend/onednn/pointwise.hpp"
#include "trireme/backend/onednn/pointwise_kernel.hpp"

namespace trireme::onednn::pointwise {
namespace {

constexpr std::int64_t kFloat = sizeof(float);
constexpr std::int64_t kBlockElements = kLanes * kLanes;
constexpr std::int64_t kMaxInner = 32;             // blocks of inner channels that are summed at a time
constexpr std::int64_t kValuesOfCore = 256 << 10;  // bytes of values that stay in a core's cache
constexpr std::int64_t kMaxResident = 32;          // groups that a panel of weights is multiplied with at a time

TRIREME_AVX512 void turn(const float* from, float* to) { winograd::transpose(from, to); }

}  // namespace

Product::Product(const BlockedProblem& problem, const Steps& steps, int threads)
    : problem_(problem), steps_(steps), threads_(threads) {
  constexpr op::Pair kOne{1, 1};
  gathers_ = steps_.src != kOne;
  scatters_ = steps_.dst != kOne;
  const Images& grid = scatters_ ? problem_.src : problem_.dst;
  grid_height_ = grid.height;
  grid_width_ = grid.width;
  image_groups_ = ceil_div(grid_height_ * grid_width_, kMaxRows);
  groups_ = grid.count * image_groups_;
  const std::int64_t inner = problem_.src.blocks, outer = problem_.dst.blocks;
  panels_ = ceil_div(outer, kMaxVectors);
  // Sums that wait for the next block would have to be collected from their cells.
  inner_blocks_ = scatters_ ? inner : ceil_div(inner, ceil_div(inner, kMaxInner));
  resident_ = std::clamp<std::int64_t>(kValuesOfCore / (inner_blocks_ * kMaxRows * kLanes * kFloat), 1, kMaxResident);
  const bool as_they_are = problem_.weights.rows_are_inner && problem_.weights.inner_stride == kBlockElements;
  weights_inner_ = kBlockElements;
  weights_outer_ = as_they_are ? problem_.weights.outer_stride : inner * kBlockElements;

  weights_at_ = bias_at_ + outer * kLanes;
  threads_at_ = weights_at_ + (as_they_are ? 0 : inner * outer * kBlockElements);
  tile_at_ = gathers_ ? resident_ * inner_blocks_ * kMaxRows * kLanes : 0;
  thread_floats_ = tile_at_ + (scatters_ ? kMaxVectors * kMaxRows * kLanes : 0);
}

std::int64_t Product::scratch_bytes() const { return (threads_at_ + threads_ * thread_floats_) * kFloat; }

Product::Group Product::group(std::int64_t index) const {
  const Range points = part(grid_height_ * grid_width_, index % image_groups_, image_groups_);
  return {index / image_groups_, points.begin, points.count()};
}

// Groups and panels of this thread: the shares of the way to cut the work that leaves the least to the busiest.
Product::Share Product::share(const Arguments& arguments) const {
  const std::int64_t threads = omp_get_num_threads(), thread = omp_get_thread_num();
  std::int64_t along_groups = 1, least = std::numeric_limits<std::int64_t>::max();
  for (std::int64_t along = 1; along <= threads; ++along) {
    const std::int64_t work = ceil_div(groups_, along) * ceil_div(panels_, threads / along);
    if (work > least) continue;
    least = work;
    along_groups = along;
  }
  const std::int64_t along_panels = threads / along_groups;
  float* const own = arguments.scratch + threads_at_ + thread * thread_floats_;
  if (thread >= along_groups * along_panels) return {{}, {}, own, own};
  return {part(groups_, thread / along_panels, along_groups), part(panels_, thread % along_panels, along_panels), own,
          own + tile_at_};
}

const float* Product::point_of(const Arguments& arguments, const Group& group, std::int64_t row) const {
  const Images& src = problem_.src;
  const std::int64_t point = group.begin + row;
  const std::int64_t y = point / grid_width_ * steps_.src[0], x = point % grid_width_ * steps_.src[1];
  return arguments.src + ((group.image * src.blocks * src.height + y) * src.width + x) * kLanes;
}

void Product::load_weights(const Arguments& arguments) const {
  const WeightsOrder& order = problem_.weights;
#pragma omp for collapse(2) schedule(static)
  for (std::int64_t inner = 0; inner < problem_.src.blocks; ++inner) {
    for (std::int64_t outer = 0; outer < problem_.dst.blocks; ++outer) {
      const float* const from = arguments.weights + outer * order.outer_stride + inner * order.inner_stride;
      float* const to = arguments.scratch + weights_at_ + outer * weights_outer_ + inner * weights_inner_;
      if (order.rows_are_inner) {
        std::copy_n(from, kBlockElements, to);
      } else {
        turn(from, to);
      }
    }
  }
}

void Product::load_group(const Arguments& arguments, const Group& group, Range inner, float* values) const {
  const std::int64_t block_stride = problem_.src.height * problem_.src.width * kLanes;
  for (std::int64_t row = 0; row < group.rows; ++row) {
    const float* const from = point_of(arguments, group, row);
    for (std::int64_t block = inner.begin; block < inner.end; ++block) {
      std::copy_n(from + block * block_stride, kLanes, values + ((block - inner.begin) * kMaxRows + row) * kLanes);
    }
  }
}

// Every point of the grid has a cell of values up to the next points, of which its own is the first.
void Product::store_cells(const Arguments& arguments, const Group& group, Range outer, const float* tile) const {
  const Images& dst = problem_.dst;
  const op::Pair step = steps_.dst;
  const bool stream = can_stream(arguments.dst, dst.elements() * kFloat);
  std::int64_t y = group.begin / grid_width_, x = group.begin % grid_width_;
  for (std::int64_t row = 0; row < group.rows; ++row) {
    Cell cell{.first = arguments.dst + ((group.image * dst.blocks + outer.begin) * dst.height * dst.width +
                                        y * step[0] * dst.width + x * step[1]) *
                                           kLanes,
              .height = std::min(step[0], dst.height - y * step[0]),
              .width = std::min(step[1], dst.width - x * step[1]),
              .row_stride = dst.width * kLanes};
    for (std::int64_t n = 0; n < outer.count(); ++n) {
      store_cell(tile + (n * kMaxRows + row) * kLanes, cell, stream);
      cell.first += dst.height * dst.width * kLanes;
    }
    if (++x == grid_width_) {
      x = 0;
      ++y;
    }
  }
}

Product::Work Product::work(const Arguments& arguments, const Share& share, Range groups, std::int64_t index,
                            Range inner) const {
  const std::int64_t src_stride = problem_.src.height * problem_.src.width * kLanes;
  Work result{};
  result.group = group(index);
  result.src = point_of(arguments, result.group, 0) + inner.begin * src_stride;
  if (gathers_) {
    float* const values = share.values + (index - groups.begin) * inner_blocks_ * kMaxRows * kLanes;
    load_group(arguments, result.group, inner, values);
    result.src = values;
  }
  const Images& dst = problem_.dst;
  result.at = (result.group.image * dst.blocks * dst.height * dst.width + result.group.begin) * kLanes;
  result.next = result.src;
  if (index + resident_ < share.groups.end) {
    const Group later = group(index + resident_);
    result.next = point_of(arguments, later, 0) + inner.begin * src_stride;
    result.next_rows = later.rows;
  }
  return result;
}

void Product::multiply(const Arguments& arguments, const Share& share, std::span<const Work> works, std::int64_t panel,
                       Range inner) const {
  const Images &src = problem_.src, &dst = problem_.dst;
  const std::int64_t src_stride = src.height * src.width * kLanes, dst_stride = dst.height * dst.width * kLanes;
  const std::int64_t first = panel * kMaxVectors;
  const Range outer{first, std::min(first + kMaxVectors, dst.blocks)};
  const bool begins = inner.begin == 0, ends = inner.end == src.blocks;
  const float* const weights = weights_at_ == threads_at_ ? arguments.weights : arguments.scratch + weights_at_;
  RowTile tile{};
  tile.blocks = inner.count();
  tile.weights = weights + first * weights_outer_ + inner.begin * weights_inner_;
  tile.weights_stride = weights_outer_;
  tile.bias = ends && arguments.bias != nullptr ? arguments.bias + first * kLanes : nullptr;
  tile.relu = ends && problem_.relu;
  tile.src_stride = gathers_ ? kMaxRows * kLanes : src_stride;
  tile.to_stride = scatters_ ? kMaxRows * kLanes : dst_stride;
  tile.stream = ends && !scatters_ && can_stream(arguments.dst, dst.elements() * kFloat);
  tile.next_stride = src_stride;
  tile.next_row_stride = steps_.src[1] * kLanes;
  // Every panel fetches its share of the rows that come after these groups.
  const Range fetched = part(kMaxRows, panel - share.panels.begin, share.panels.count());
  for (const Work& now : works) {
    const std::int64_t at = now.at + first * dst_stride;
    tile.src = now.src;
    tile.to = scatters_ ? share.tile : arguments.dst + at;
    tile.from = begins ? (arguments.addend != nullptr ? arguments.addend + at : nullptr) : tile.to;
    tile.next = now.next;
    tile.next_begin = fetched.begin;
    tile.next_end = std::min(fetched.end, now.next_rows);
    row_product(static_cast<int>(now.group.rows), static_cast<int>(outer.count()))(tile);
    if (scatters_) store_cells(arguments, now.group, outer, share.tile);
  }
}

void Product::run(const Arguments& arguments) const {
  Arguments padded = arguments;
  if (problem_.bias_channels > 0) {
    float* const bias = arguments.scratch + bias_at_;
    std::copy_n(arguments.bias, problem_.bias_channels, bias);
    std::fill(bias + problem_.bias_channels, bias + problem_.dst.blocks * kLanes, 0.0f);
    padded.bias = bias;
  }
#pragma omp parallel num_threads(std::min(threads_, omp_get_max_threads()))
  {
    if (weights_at_ != threads_at_) load_weights(padded);
    const Share mine = share(padded);
    for (std::int64_t begin = 0; begin < problem_.src.blocks; begin += inner_blocks_) {
      const Range inner{begin, std::min(begin + inner_blocks_, problem_.src.blocks)};
      for (std::int64_t first = mine.groups.begin; first < mine.groups.end; first += resident_) {
        const Range groups{first, std::min(first + resident_, mine.groups.end)};
        std::array<Work, kMaxResident> works;
        for (std::int64_t i = 0; i < groups.count(); ++i) {
          works[i] = work(padded, mine, groups, first + i, inner);
        }
        for (std::int64_t panel = mine.panels.begin; panel < mine.panels.end; ++panel) {
          multiply(padded, mine, {works.data(), static_cast<std::size_t>(groups.count())}, panel, inner);
        }
      }
    }
    finish_streams();
  }
}

}  // namespace trireme::onednn::pointwise
