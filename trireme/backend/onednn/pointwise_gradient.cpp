#include <omp.h>

#include <algorithm>

#include "trireme/backend/onednn/pointwise.hpp"
#include "trireme/backend/onednn/pointwise_kernel.hpp"

namespace trireme::onednn::pointwise {
namespace {

constexpr std::int64_t kFloat = sizeof(float);
constexpr std::int64_t kBlockElements = kLanes * kLanes;
constexpr std::int64_t kChunkPixels = 224;  // a panel of them and of the other operand fit the first level of cache
constexpr std::int64_t kChunkBytes = 768 << 10;  // of all panels of a chunk
constexpr std::int64_t kOwnSums = 1 << 20;       // bytes of sums up to which every thread may have its own
constexpr std::int64_t kInnerPass = 8;           // inner blocks that a panel of gradients is multiplied with at a time

// The part of the work that the busiest thread has.
double largest_share(std::int64_t count, std::int64_t threads) {
  return static_cast<double>(ceil_div(count, threads)) / static_cast<double>(count);
}

}  // namespace

WeightsGradient::WeightsGradient(const BlockedProblem& problem, op::Pair step, int threads)
    : problem_(problem), step_(step), threads_(threads) {
  constexpr op::Pair kOne{1, 1};
  gathers_ = step_ != kOne;
  const std::int64_t inner = problem_.src.blocks, outer = problem_.dst.blocks;
  const std::int64_t image_pixels = problem_.dst.height * problem_.dst.width;
  const std::int64_t most =
      std::clamp<std::int64_t>(kChunkBytes / ((inner + outer) * kLanes * kFloat), 48, kChunkPixels);
  pixel_chunks_ = ceil_div(image_pixels, most);
  pixels_ = ceil_div(image_pixels, pixel_chunks_);
  images_ = std::clamp<std::int64_t>(kChunkPixels / pixels_, 1, problem_.dst.count);
  image_chunks_ = ceil_div(problem_.dst.count, images_);

  sums_floats_ = inner * outer * kBlockElements;
  by_pixels_ = sums_floats_ * kFloat <= kOwnSums &&
               largest_share(image_chunks_ * pixel_chunks_, threads_) <= 1.1 * largest_share(outer, threads_);
  values_at_ = by_pixels_ ? (threads_ - 1) * sums_floats_ : 0;
  values_floats_ = gathers_ ? inner * images_ * pixels_ * kLanes : 0;
}

std::int64_t WeightsGradient::scratch_bytes() const { return (values_at_ + threads_ * values_floats_) * kFloat; }

WeightsGradient::Chunk WeightsGradient::chunk(std::int64_t index) const {
  const Range images = part(problem_.dst.count, index / pixel_chunks_, image_chunks_);
  const Range pixels = part(problem_.dst.height * problem_.dst.width, index % pixel_chunks_, pixel_chunks_);
  return {images.begin, images.count(), pixels.begin, pixels.count()};
}

WeightsGradient::Panel WeightsGradient::values(const Arguments& arguments, const Chunk& chunk,
                                               std::int64_t inner) const {
  const Images& src = problem_.src;
  const std::int64_t y = chunk.begin / problem_.dst.width * step_[0];
  const std::int64_t x = chunk.begin % problem_.dst.width * step_[1];
  const std::int64_t row = (chunk.image * src.blocks + inner) * src.height + y;
  return {arguments.src + (row * src.width + x) * kLanes, src.blocks * src.height * src.width * kLanes};
}

WeightsGradient::Panel WeightsGradient::gradients(const Arguments& arguments, const Chunk& chunk,
                                                  std::int64_t outer) const {
  const Images& dst = problem_.dst;
  const std::int64_t block = chunk.image * dst.blocks + outer;
  return {arguments.diff_dst + (block * dst.height * dst.width + chunk.begin) * kLanes,
          dst.blocks * dst.height * dst.width * kLanes};
}

WeightsGradient::Panel WeightsGradient::half(const Arguments& arguments, const Chunk& chunk, Range outer,
                                             std::int64_t nth) const {
  const std::int64_t block = nth / 2;
  Panel panel = block < outer.count() ? gradients(arguments, chunk, outer.begin + block)
                                      : values(arguments, chunk, block - outer.count());
  panel.first += nth % 2 * ((chunk.pixels + 1) / 2) * kLanes;
  return panel;
}

void WeightsGradient::gather(const Arguments& arguments, const Chunk& chunk, float* values) const {
  const Images& src = problem_.src;
  for (std::int64_t inner = 0; inner < src.blocks; ++inner) {
    for (std::int64_t image = chunk.image; image < chunk.image + chunk.images; ++image) {
      const float* const from = arguments.src + (image * src.blocks + inner) * src.height * src.width * kLanes;
      for (std::int64_t pixel = chunk.begin; pixel < chunk.begin + chunk.pixels; ++pixel, values += kLanes) {
        const std::int64_t y = pixel / problem_.dst.width * step_[0];
        const std::int64_t x = pixel % problem_.dst.width * step_[1];
        std::copy_n(from + (y * src.width + x) * kLanes, kLanes, values);
      }
    }
  }
}

void WeightsGradient::multiply(const Arguments& arguments, const Chunk& chunk, const Chunk& next, Range outer,
                               const float* gathered, bool add, float* sums) const {
  const std::int64_t inner_blocks = problem_.src.blocks;
  const std::int64_t calls = outer.count() * inner_blocks, halves = 2 * (outer.count() + inner_blocks);
  std::int64_t call = 0;
  PixelSums pixels{};
  pixels.images = chunk.images;
  pixels.count = chunk.pixels;
  pixels.add = add;
  for (std::int64_t first = 0; first < inner_blocks; first += kInnerPass) {
    const std::int64_t last = std::min(first + kInnerPass, inner_blocks);
    for (std::int64_t o = outer.begin; o < outer.end; ++o) {
      const Panel columns = gradients(arguments, chunk, o);
      for (std::int64_t i = first; i < last; ++i, ++call) {
        Panel rows = values(arguments, chunk, i);
        if (gathers_) rows = {gathered + i * chunk.images * chunk.pixels * kLanes, chunk.pixels * kLanes};
        // What the next chunk needs is fetched in even steps.
        const Range fetched = part(halves, call, calls);
        const Panel ahead = fetched.count() > 0 ? half(arguments, next, outer, fetched.begin) : columns;
        const bool turned = !problem_.weights.rows_are_inner;
        const Panel &x = turned ? columns : rows, &y = turned ? rows : columns;
        pixels.x = x.first;
        pixels.x_stride = x.stride;
        pixels.y = y.first;
        pixels.y_stride = y.stride;
        pixels.next = ahead.first;
        pixels.next_stride = ahead.stride;
        pixels.sums = sums + o * problem_.weights.outer_stride + i * problem_.weights.inner_stride;
        add_pixels(pixels);
      }
    }
  }
}

void WeightsGradient::accumulate(const Arguments& arguments, Range chunks, Range outer, float* gathered,
                                 float* sums) const {
  if (chunks.count() == 0) std::fill_n(sums, sums_floats_, 0.0f);
  for (std::int64_t index = chunks.begin; index < chunks.end; ++index) {
    const Chunk now = chunk(index);
    if (gathers_) gather(arguments, now, gathered);
    multiply(arguments, now, chunk(std::min(index + 1, chunks.end - 1)), outer, gathered, index > chunks.begin, sums);
  }
}

// Every thread adds a part of all threads' sums to those of the first, which are the result.
void WeightsGradient::add_up(const Arguments& arguments, std::int64_t threads) const {
  const std::int64_t blocks = sums_floats_ / kBlockElements;
#pragma omp for schedule(static)
  for (std::int64_t block = 0; block < blocks; ++block) {
    for (std::int64_t thread = 1; thread < threads; ++thread) {
      add_values(kBlockElements, arguments.scratch + (thread - 1) * sums_floats_ + block * kBlockElements,
                 arguments.diff_weights + block * kBlockElements);
    }
  }
}

void WeightsGradient::run(const Arguments& arguments) const {
  const Images& dst = problem_.dst;
  const std::int64_t chunks = image_chunks_ * pixel_chunks_;
#pragma omp parallel num_threads(std::min(threads_, omp_get_max_threads()))
  {
    const std::int64_t thread = omp_get_thread_num(), threads = omp_get_num_threads();
    float* const gathered = arguments.scratch + values_at_ + thread * values_floats_;
    if (by_pixels_) {
      float* const sums = thread == 0 ? arguments.diff_weights : arguments.scratch + (thread - 1) * sums_floats_;
      accumulate(arguments, part(chunks, thread, threads), {0, dst.blocks}, gathered, sums);
#pragma omp barrier
      add_up(arguments, threads);
    } else {
      accumulate(arguments, {0, chunks}, part(dst.blocks, thread, threads), gathered, arguments.diff_weights);
    }
    if (arguments.diff_bias != nullptr) {
#pragma omp for schedule(static)
      for (std::int64_t outer = 0; outer < dst.blocks; ++outer) {
        float sums[kLanes] = {};
        const std::int64_t pixels = dst.height * dst.width;
        for (std::int64_t image = 0; image < dst.count; ++image) {
          add_vectors(pixels, arguments.diff_dst + (image * dst.blocks + outer) * pixels * kLanes, sums);
        }
        const std::int64_t first = outer * kLanes;
        std::copy_n(sums, std::min(kLanes, problem_.bias_channels - first), arguments.diff_bias + first);
      }
    }
  }
}

}  // namespace trireme::onednn::pointwise
