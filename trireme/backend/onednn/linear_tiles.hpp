// The innermost loops of linear_loops.cpp: tiles of sums that stay in vector registers, see vectors.hpp.
#pragma once

#include <cstdint>

#include "trireme/backend/onednn/vectors.hpp"

namespace trireme::onednn {

// A tile is kTileRows x kTileVectors sums: of the 32 or 16 registers it leaves enough for what the sums are made of.
template <typename Isa>
inline constexpr int kTileRows = Isa::kWidth / 2;
inline constexpr int kTileVectors = 3;

// sums[row][sample] += row of weights · sample of src, over a piece of the columns, per lane of the vector.
struct DotTile {
  const float* weights;
  const float* src;
  std::int64_t stride;  // of both
  std::int64_t columns;
  // Weights of the tile after this one. The hardware's own prefetch starts anew with each short run of a row, too late.
  const float* next;
  float* sums;
  std::int64_t sums_stride;  // from row to row
  bool first;                // sums begin at zero
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
  const float* next;  // x of the tile after this one; null: x is in the cache
  float* y;
  std::int64_t stride;  // of x and y
  bool first;           // y is written, not added to
  bool stream;          // around the cache; y is aligned to the vector then
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

// The tile with these extents, which are known only now: one of kRows x kSamples and all smaller ones.
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

}  // namespace trireme::onednn
