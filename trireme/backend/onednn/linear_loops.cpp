#include "trireme/backend/onednn/linear_loops.hpp"

#include <algorithm>

#include "trireme/backend/onednn/linear_tiles.hpp"

namespace trireme::onednn {
namespace {

// Columns that are worked on at once: those of a few samples stay in the first level of the cache while the rows of
// weights go by.
constexpr std::int64_t kPieceColumns = 960;
// Rows of weights that are added to diff_src at once.
constexpr std::int64_t kPieceRows = 16;

template <typename Isa>
TRIREME_INLINE void forward(const LinearForward& work, const Range& rows) {
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
TRIREME_INLINE void backward_data(const LinearBackwardData& work, const Range& range) {
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
TRIREME_INLINE void backward_weights(const LinearBackwardWeights& work, const Range& rows) {
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
  if (work.diff_bias == nullptr) return;
  std::fill(work.diff_bias + rows.begin, work.diff_bias + rows.end, 0.0f);
  for (std::int64_t n = 0; n < batch; ++n) {
    for (std::int64_t o = rows.begin; o < rows.end; ++o) work.diff_bias[o] += work.diff_dst[n * out + o];
  }
}

TRIREME_AVX512 void forward_avx512(const LinearForward& work, const Range& rows) { forward<Avx512>(work, rows); }
TRIREME_AVX2 void forward_avx2(const LinearForward& work, const Range& rows) { forward<Avx2>(work, rows); }
TRIREME_AVX512 void backward_data_avx512(const LinearBackwardData& work, const Range& columns) {
  backward_data<Avx512>(work, columns);
}
TRIREME_AVX2 void backward_data_avx2(const LinearBackwardData& work, const Range& columns) {
  backward_data<Avx2>(work, columns);
}
TRIREME_AVX512 void backward_weights_avx512(const LinearBackwardWeights& work, const Range& rows) {
  backward_weights<Avx512>(work, rows);
}
TRIREME_AVX2 void backward_weights_avx2(const LinearBackwardWeights& work, const Range& rows) {
  backward_weights<Avx2>(work, rows);
}

}  // namespace

bool has_linear_loops() { return has_avx512() || has_avx2(); }

void linear_forward(const LinearForward& work, const Range& rows) {
  has_avx512() ? forward_avx512(work, rows) : forward_avx2(work, rows);
}

void linear_backward_data(const LinearBackwardData& work, const Range& columns) {
  has_avx512() ? backward_data_avx512(work, columns) : backward_data_avx2(work, columns);
}

void linear_backward_weights(const LinearBackwardWeights& work, const Range& rows) {
  has_avx512() ? backward_weights_avx512(work, rows) : backward_weights_avx2(work, rows);
  if (work.stream) finish_streams();
}

}  // namespace trireme::onednn
