#include <omp.h>

#include <algorithm>

#include "trireme/backend/onednn/kernels.hpp"
#include "trireme/backend/onednn/own_kernel.hpp"
#include "trireme/backend/onednn/vectors.hpp"

namespace trireme::onednn {
namespace {

// Tiles of kTileRows x kTileVectors sums stay in vector registers (vectors.hpp) and leave enough for the operands.
template <typename Isa>
constexpr int kTileRows = Isa::kWidth / 2;
constexpr int kTileVectors = 3;

// sums[row][sample] += row of weights · sample of src over some columns, per lane of the vector.
struct DotTile {
  const float* weights;
  const float* src;
  std::int64_t stride;  // of both
  std::int64_t columns;
  // Weights of the next tile, to prefetch: the hardware's prefetcher restarts at each short run of a row, too late.
  const float* next;
  float* sums;
  std::int64_t sums_stride;  // from row to row
  bool first;                // sums start at zero
};

template <typename Isa, int kRows, int kSamples>
TRIREME_INLINE void dot_tile(const DotTile& t) {
  Vector<Isa> sums[kRows][kSamples];
  for (int r = 0; r < kRows; ++r) {
    for (int n = 0; n < kSamples; ++n) {
      sums[r][n] = t.first ? Vector<Isa>{} : vector_at<Isa>(t.sums + r * t.sums_stride + n * Isa::kWidth);
    }
  }
  for (std::int64_t k = 0; k < t.columns; k += Isa::kWidth) {
    Vector<Isa> weights[kRows];
    for (int r = 0; r < kRows; ++r) {
      weights[r] = vector_at<Isa>(t.weights + r * t.stride + k);
      prefetch(t.next + r * t.stride + k);
    }
    for (int n = 0; n < kSamples; ++n) {
      const Vector<Isa> src = vector_at<Isa>(t.src + n * t.stride + k);
      for (int r = 0; r < kRows; ++r) sums[r][n] += weights[r] * src;
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int n = 0; n < kSamples; ++n) vector_at<Isa>(t.sums + r * t.sums_stride + n * Isa::kWidth) = sums[r][n];
  }
}

// y[row][column] (+)= sum over terms of factors[row][term]·x[term][column].
struct RankTile {
  const float* factors;
  std::int64_t factor_row, factor_term;  // strides
  const float* x;
  std::int64_t terms;
  const float* next;  // x of the next tile, to prefetch; null: x is in the cache
  float* y;
  std::int64_t stride;  // of x and y
  bool first;           // y is written, not added to
  bool stream;          // non-temporal stores; y must be aligned to the vector
};

template <typename Isa, int kRows, int kVectors>
TRIREME_INLINE void rank_tile(const RankTile& t) {
  Vector<Isa> sums[kRows][kVectors];
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v)
      sums[r][v] = t.first ? Vector<Isa>{} : vector_at<Isa>(t.y + r * t.stride + v * Isa::kWidth);
  }
  for (std::int64_t i = 0; i < t.terms; ++i) {
    Vector<Isa> x[kVectors];
    for (int v = 0; v < kVectors; ++v) {
      x[v] = vector_at<Isa>(t.x + i * t.stride + v * Isa::kWidth);
      if (t.next != nullptr) prefetch(t.next + i * t.stride + v * Isa::kWidth);
    }
    for (int r = 0; r < kRows; ++r) {
      const float factor = t.factors[r * t.factor_row + i * t.factor_term];
      for (int v = 0; v < kVectors; ++v) sums[r][v] += factor * x[v];
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) {
      float* y = t.y + r * t.stride + v * Isa::kWidth;
      if (t.stream) {
        stream<Isa>(y, sums[r][v]);
      } else {
        vector_at<Isa>(y) = sums[r][v];
      }
    }
  }
}

// Dispatches to the tile with these extents: kRows x kSamples or smaller.
template <typename Isa, int kRows = kTileVectors, int kSamples = kTileRows<Isa>>
TRIREME_INLINE void dot_tile(std::int64_t rows, std::int64_t samples, const DotTile& tile) {
  if (rows < kRows) {
    if constexpr (kRows > 1) dot_tile<Isa, kRows - 1, kSamples>(rows, samples, tile);
  } else if (samples < kSamples) {
    if constexpr (kSamples > 1) dot_tile<Isa, kRows, kSamples - 1>(rows, samples, tile);
  } else {
    dot_tile<Isa, kRows, kSamples>(tile);
  }
}

template <typename Isa, int kRows = kTileRows<Isa>, int kVectors = kTileVectors>
TRIREME_INLINE void rank_tile(std::int64_t rows, std::int64_t vectors, const RankTile& tile) {
  if (vectors < kVectors) {
    if constexpr (kVectors > 1) rank_tile<Isa, kRows, kVectors - 1>(rows, vectors, tile);
  } else if (rows < kRows) {
    if constexpr (kRows > 1) rank_tile<Isa, kRows - 1, kVectors>(rows, vectors, tile);
  } else {
    rank_tile<Isa, kRows, kVectors>(tile);
  }
}

// The three products for small batches, limited by reading or writing the weights once. All matrices are row-major; src
// and weights have rows of the same columns. Limits: rows of whole vectors of the widest instruction set; samples and
// (in forward, at once) rows whose sums fit the cache.
constexpr std::int64_t kLinearColumns = 16;
constexpr std::int64_t kLinearBatch = 32;
constexpr std::int64_t kLinearRows = 48;

struct LinearSizes {
  std::int64_t batch, columns, out;
};

// Half-open.
struct Range {
  std::int64_t begin, end;
};

// dst[n][o] = src[n] · weights[o] + bias[o] for a range of rows o of weights, at least 0 with relu; bias may be null.
struct LinearForward {
  LinearSizes sizes;
  const float *src, *weights, *bias;
  float* dst;
  bool relu;
};

// diff_src[n][k] = sum over o of diff_dst[n][o]·weights[o][k] for a range of columns k, in whole vectors.
struct LinearBackwardData {
  LinearSizes sizes;
  const float *diff_dst, *weights;
  float* diff_src;
};

// diff_weights[o][k] = sum over n of diff_dst[n][o]·src[n][k] and diff_bias[o] = sum over n of diff_dst[n][o] for a
// range of rows o; diff_bias may be null. stream: non-temporal stores to diff_weights, which is aligned to 64 bytes.
struct LinearBackwardWeights {
  LinearSizes sizes;
  const float *src, *diff_dst;
  float *diff_weights, *diff_bias;
  bool stream;
};

// Columns at once: those of a few samples stay in the L1 cache while rows of weights pass.
constexpr std::int64_t kPieceColumns = 960;
// Rows of weights that are added to diff_src at once.
constexpr std::int64_t kPieceRows = 16;

template <typename Isa>
TRIREME_INLINE void compute_with(const LinearForward& work, const Range& rows) {
  alignas(64) float sums[kLinearRows * kLinearBatch * Isa::kWidth];
  const auto [batch, columns, out] = work.sizes;
  const std::int64_t row_sums = batch * Isa::kWidth;
  for (std::int64_t k = 0; k < columns; k += kPieceColumns) {
    const std::int64_t piece = std::min(kPieceColumns, columns - k);
    for (std::int64_t o = rows.begin; o < rows.end; o += kTileVectors) {
      const std::int64_t tile_rows = std::min<std::int64_t>(kTileVectors, rows.end - o);
      const bool last = o + kTileVectors >= rows.end;
      const float* next =
          last ? work.weights + rows.begin * columns + k + piece : work.weights + (o + kTileVectors) * columns + k;
      for (std::int64_t n = 0; n < batch; n += kTileRows<Isa>) {
        dot_tile<Isa>(tile_rows, batch - n,
                      {.weights = work.weights + o * columns + k,
                       .src = work.src + n * columns + k,
                       .stride = columns,
                       .columns = piece,
                       .next = next,
                       .sums = sums + (o - rows.begin) * row_sums + n * Isa::kWidth,
                       .sums_stride = row_sums,
                       .first = k == 0});
      }
    }
  }
  for (std::int64_t n = 0; n < batch; ++n) {
    for (std::int64_t o = rows.begin; o < rows.end; ++o) {
      const float* lanes = sums + (o - rows.begin) * row_sums + n * Isa::kWidth;
      float value = 0;
      for (int lane = 0; lane < Isa::kWidth; ++lane) value += lanes[lane];
      if (work.bias != nullptr) value += work.bias[o];
      work.dst[n * out + o] = work.relu && value < 0 ? 0 : value;
    }
  }
}

template <typename Isa>
TRIREME_INLINE void compute_with(const LinearBackwardData& work, const Range& range) {
  const auto [batch, columns, out] = work.sizes;
  constexpr std::int64_t kTileColumns = kTileVectors * Isa::kWidth;
  for (std::int64_t begin = range.begin; begin < range.end; begin += kPieceColumns) {
    const std::int64_t end = std::min(range.end, begin + kPieceColumns);
    for (std::int64_t o = 0; o < out; o += kPieceRows) {
      for (std::int64_t n = 0; n < batch; n += kTileRows<Isa>) {
        for (std::int64_t k = begin; k < end; k += kTileColumns) {
          rank_tile<Isa>(batch - n, (end - k) / Isa::kWidth,
                         {.factors = work.diff_dst + n * out + o,
                          .factor_row = out,
                          .factor_term = 1,
                          .x = work.weights + o * columns + k,
                          .terms = std::min(kPieceRows, out - o),
                          .next = n == 0 ? work.weights + (o + kPieceRows) * columns + k : nullptr,
                          .y = work.diff_src + n * columns + k,
                          .stride = columns,
                          .first = o == 0,
                          .stream = false});
        }
      }
    }
  }
}

template <typename Isa>
TRIREME_INLINE void compute_with(const LinearBackwardWeights& work, const Range& rows) {
  const auto [batch, columns, out] = work.sizes;
  constexpr std::int64_t kTileColumns = kTileVectors * Isa::kWidth;
  for (std::int64_t begin = 0; begin < columns; begin += kPieceColumns) {
    const std::int64_t end = std::min(columns, begin + kPieceColumns);
    for (std::int64_t o = rows.begin; o < rows.end; o += kTileRows<Isa>) {
      for (std::int64_t k = begin; k < end; k += kTileColumns) {
        rank_tile<Isa>(rows.end - o, (end - k) / Isa::kWidth,
                       {.factors = work.diff_dst + o,
                        .factor_row = 1,
                        .factor_term = out,
                        .x = work.src + k,
                        .terms = batch,
                        .next = nullptr,
                        .y = work.diff_weights + o * columns + k,
                        .stride = columns,
                        .first = true,
                        .stream = work.stream});
      }
    }
  }
  if (work.stream) finish_streams();
  if (work.diff_bias == nullptr) return;
  std::fill(work.diff_bias + rows.begin, work.diff_bias + rows.end, 0.0f);
  for (std::int64_t n = 0; n < batch; ++n) {
    for (std::int64_t o = rows.begin; o < rows.end; ++o) work.diff_bias[o] += work.diff_dst[n * out + o];
  }
}

template <typename Work>
TRIREME_AVX512 void compute_avx512(const Work& work, const Range& range) {
  compute_with<Avx512>(work, range);
}
template <typename Work>
TRIREME_AVX2 void compute_avx2(const Work& work, const Range& range) {
  compute_with<Avx2>(work, range);
}

std::int64_t rounded_up(std::int64_t value, std::int64_t unit) { return (value + unit - 1) / unit * unit; }

// Equal parts of at most about `block`, in whole units; their number is about a multiple of the threads.
class Shares {
 public:
  Shares(std::int64_t total, std::int64_t block, std::int64_t unit) : total_(total) {
    const std::int64_t parts = rounded_up((total + block - 1) / block, omp_get_max_threads());
    size_ = rounded_up((total + parts - 1) / parts, unit);
    count_ = (total + size_ - 1) / size_;
  }
  std::int64_t count() const { return count_; }
  Range operator[](std::int64_t part) const { return {part * size_, std::min(total_, (part + 1) * size_)}; }

 private:
  std::int64_t total_, size_ = 0, count_ = 0;
};

bool has_whole_rows(const Layout& layout) {
  const auto of_rows = [](const Layout::Block& block) { return block.axis == 0; };
  return layout.order.front() == 0 && std::none_of(layout.blocks.begin(), layout.blocks.end(), of_rows);
}

std::optional<LinearSizes> sizes_of(const Shape& src, std::int64_t out, const LinearLayouts& layouts) {
  const LinearSizes sizes{.batch = src[0], .columns = layouts.src.elements(src) / src[0], .out = out};
  const bool fits = (has_avx512() || has_avx2()) && layouts.src == layouts.weights && has_whole_rows(layouts.src) &&
                    sizes.batch <= kLinearBatch && sizes.columns % kLinearColumns == 0;
  return fits ? std::optional(sizes) : std::nullopt;
}

template <typename Work>
void compute(const Work& work, const Shares& shares) {
  const auto [batch, columns, out] = work.sizes;
  const bool is_worth_threads = batch * columns * out > 16 * kParallelElements;
#pragma omp parallel for schedule(static) if (is_worth_threads)
  for (std::int64_t part = 0; part < shares.count(); ++part)
    has_avx512() ? compute_avx512(work, shares[part]) : compute_avx2(work, shares[part]);
}

}  // namespace

std::optional<KernelChoice> own_linear(const op::FullyConnected& operation, const KernelRequest& request,
                                       const LinearLayouts& layouts) {
  const auto sizes = sizes_of(request.inputs[0].shape, request.inputs[1].shape[0], layouts);
  if (!sizes) return std::nullopt;
  KernelChoice choice = own_kernel(request, [operation, sizes = *sizes](const Operands& operands, const RunContext&) {
    const LinearForward work{.sizes = sizes,
                             .src = operands.input(0),
                             .weights = operands.input(1),
                             .bias = operation.bias ? operands.input(2) : nullptr,
                             .dst = operands.output(),
                             .relu = operation.activation == op::Activation::relu};
    compute(work, Shares(sizes.out, kLinearRows, 3));
  });
  choice.inputs[0] = layouts.src;
  choice.inputs[1] = layouts.weights;
  return choice;
}

std::optional<KernelChoice> own_linear(const op::FullyConnectedBackwardData& operation, const KernelRequest& request,
                                       const LinearLayouts& layouts) {
  const auto sizes = sizes_of(operation.src_shape, request.inputs[1].shape[0], layouts);
  if (!sizes) return std::nullopt;
  KernelChoice choice = own_kernel(request, [sizes = *sizes](const Operands& operands, const RunContext&) {
    const LinearBackwardData work{
        .sizes = sizes, .diff_dst = operands.input(0), .weights = operands.input(1), .diff_src = operands.output()};
    compute(work, Shares(sizes.columns, kPieceColumns, kLinearColumns));
  });
  choice.inputs[1] = layouts.weights;
  choice.outputs[0] = layouts.src;
  return choice;
}

std::optional<KernelChoice> own_linear(const op::FullyConnectedBackwardWeights& operation, const KernelRequest& request,
                                       const LinearLayouts& layouts) {
  const auto sizes = sizes_of(request.inputs[0].shape, request.inputs[1].shape[1], layouts);
  if (!sizes) return std::nullopt;
  KernelChoice choice = own_kernel(request, [operation, sizes = *sizes](const Operands& operands, const RunContext&) {
    float* diff_weights = operands.output(0);
    const auto bytes = sizes.out * sizes.columns * static_cast<std::int64_t>(sizeof(float));
    const LinearBackwardWeights work{.sizes = sizes,
                                     .src = operands.input(0),
                                     .diff_dst = operands.input(1),
                                     .diff_weights = diff_weights,
                                     .diff_bias = operation.bias ? operands.output(1) : nullptr,
                                     .stream = can_stream(diff_weights, bytes)};
    compute(work, Shares(sizes.out, kLinearRows, 8));
  });
  choice.inputs[0] = layouts.src;
  choice.outputs[0] = layouts.weights;
  return choice;
}

}  // namespace trireme::onednn
