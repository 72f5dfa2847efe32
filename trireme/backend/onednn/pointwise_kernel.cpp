#include "trireme/backend/onednn/pointwise_kernel.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "trireme/backend/onednn/winograd_transform.hpp"

namespace trireme::onednn::pointwise {
namespace {

using winograd::lanes;

// Into the first level of the cache.
TRIREME_AVX512_INLINE inline void prefetch_near(const float* address) { __builtin_prefetch(address, 0, 3); }

// The same for a line that will be written.
TRIREME_AVX512_INLINE inline void prefetch_to_write(const float* address) {
  asm volatile("prefetchw %0" ::"m"(*address));
}

template <int rows, int vectors, typename Store>
TRIREME_AVX512_INLINE inline void each_result(const RowTile& tile, const __m512 (&sums)[rows][vectors],
                                              const Store& store) {
#pragma GCC unroll 2
  for (int n = 0; n < vectors; ++n) {
    float* const to = tile.to + n * tile.to_stride;
#pragma GCC unroll 14
    for (int r = 0; r < rows; ++r) store(to + r * kLanes, n, sums[r][n]);
  }
}

template <int rows, int vectors>
TRIREME_AVX512_INLINE inline void finish(const RowTile& tile, const __m512 (&sums)[rows][vectors]) {
  if (tile.from == nullptr && tile.bias == nullptr && !tile.relu) {
    if (tile.stream) {
      each_result(tile, sums, [](float* to, int, __m512 sum) TRIREME_AVX512_INLINE { _mm512_stream_ps(to, sum); });
    } else {
      each_result(tile, sums, [](float* to, int, __m512 sum) TRIREME_AVX512_INLINE { _mm512_storeu_ps(to, sum); });
    }
    return;
  }
  const __m512 floor = lanes(tile.relu ? 0.0f : -std::numeric_limits<float>::infinity());
  each_result(tile, sums, [&](float* to, int n, __m512 sum) TRIREME_AVX512_INLINE {
    if (tile.bias != nullptr) sum = _mm512_add_ps(sum, _mm512_loadu_ps(tile.bias + n * kLanes));
    if (tile.from != nullptr) sum = _mm512_add_ps(sum, _mm512_loadu_ps(tile.from + (to - tile.to)));
    // In this order what is not a number stays that.
    sum = _mm512_maskz_max_ps(0xffff, floor, sum);
    if (tile.stream) {
      _mm512_stream_ps(to, sum);
    } else {
      _mm512_storeu_ps(to, sum);
    }
  });
}

template <int rows, int vectors>
TRIREME_AVX512 void product(const RowTile& tile) {
  __m512 sums[rows][vectors];
#pragma GCC unroll 14
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 2
    for (int n = 0; n < vectors; ++n) sums[r][n] = _mm512_setzero_ps();
  }
  if (tile.from != nullptr) {
    for (int n = 0; n < vectors; ++n) {
      for (int r = 0; r < rows; ++r) prefetch_near(tile.from + n * tile.to_stride + r * kLanes);
    }
  }
  // Few at a time: many together would keep the loads of the loop waiting.
  const std::int64_t written = tile.from == nullptr && !tile.stream ? (rows + tile.blocks - 1) / tile.blocks : 0;
  const float* v = tile.src;
  const float* u = tile.weights;
  const float* next = tile.next;
  const std::int64_t weights_stride = tile.weights_stride;
  for (std::int64_t block = 0; block < tile.blocks; ++block) {
    for (std::int64_t r = tile.next_begin; r < tile.next_end; ++r) prefetch(next + r * tile.next_row_stride);
    next += tile.next_stride;
    for (std::int64_t r = block * written; r < std::min<std::int64_t>((block + 1) * written, rows); ++r) {
      for (int n = 0; n < vectors; ++n) prefetch_to_write(tile.to + n * tile.to_stride + r * kLanes);
    }
    const float* const following = v + tile.src_stride;
#pragma GCC unroll 14
    for (int r = 0; r < rows; ++r) prefetch_near(following + r * kLanes);
#pragma GCC unroll 4
    for (int i = 0; i < kLanes; ++i) {
      __m512 weights[vectors];
#pragma GCC unroll 2
      for (int n = 0; n < vectors; ++n) weights[n] = _mm512_loadu_ps(u + n * weights_stride);
      u += kLanes;
#pragma GCC unroll 14
      for (int r = 0; r < rows; ++r) {
        const __m512 value = lanes(v[r * kLanes + i]);
#pragma GCC unroll 2
        for (int n = 0; n < vectors; ++n) sums[r][n] = _mm512_fmadd_ps(value, weights[n], sums[r][n]);
      }
    }
    v = following;
  }
  finish<rows, vectors>(tile, sums);
}

template <int... index>
constexpr auto products(std::integer_sequence<int, index...>) {
  return std::array<std::array<RowProduct, kMaxVectors>, kMaxRows>{
      {std::array<RowProduct, kMaxVectors>{product<index + 1, 1>, product<index + 1, 2>}...}};
}

}  // namespace

RowProduct row_product(int rows, int vectors) {
  static constexpr auto kProducts = products(std::make_integer_sequence<int, kMaxRows>());
  return kProducts[rows - 1][vectors - 1];
}

TRIREME_AVX512 void store_cell(const float* value, const Cell& cell, bool stream) {
  __m512 values = _mm512_loadu_ps(value);
  for (std::int64_t y = 0; y < cell.height; ++y) {
    float* const row = cell.first + y * cell.row_stride;
    for (std::int64_t x = 0; x < cell.width; ++x) {
      if (stream) {
        _mm512_stream_ps(row + x * kLanes, values);
      } else {
        _mm512_storeu_ps(row + x * kLanes, values);
      }
      values = _mm512_setzero_ps();
    }
  }
}

TRIREME_AVX512 void add_pixels(const PixelSums& pixels) {
  __m512 sums[kLanes];
#pragma GCC unroll 16
  for (int r = 0; r < kLanes; ++r) {
    sums[r] = _mm512_setzero_ps();
    prefetch_near(pixels.sums + r * kLanes);
  }
  for (std::int64_t image = 0; image < pixels.images; ++image) {
    const float* x = pixels.x + image * pixels.x_stride;
    const float* y = pixels.y + image * pixels.y_stride;
    const float* next = pixels.next + image * pixels.next_stride;
    for (std::int64_t i = 0; i < pixels.count; i += 2) {
      prefetch(next);
      next += kLanes;
      const int two = i + 2 <= pixels.count ? 2 : 1;
      for (int k = 0; k < two; ++k) {
        const __m512 values = _mm512_loadu_ps(y);
#pragma GCC unroll 16
        for (int r = 0; r < kLanes; ++r) sums[r] = _mm512_fmadd_ps(lanes(x[r]), values, sums[r]);
        x += kLanes;
        y += kLanes;
      }
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < kLanes; ++r) {
    if (pixels.add) sums[r] = _mm512_add_ps(sums[r], _mm512_loadu_ps(pixels.sums + r * kLanes));
    _mm512_storeu_ps(pixels.sums + r * kLanes, sums[r]);
  }
}

TRIREME_AVX512 void add_vectors(std::int64_t count, const float* from, float* sums) {
  __m512 sum = _mm512_loadu_ps(sums);
  for (std::int64_t i = 0; i < count; ++i) sum = _mm512_add_ps(sum, _mm512_loadu_ps(from + i * kLanes));
  _mm512_storeu_ps(sums, sum);
}

TRIREME_AVX512 void add_values(std::int64_t count, const float* from, float* to) {
  for (std::int64_t i = 0; i < count; i += kLanes) {
    _mm512_storeu_ps(to + i, _mm512_add_ps(_mm512_loadu_ps(to + i), _mm512_loadu_ps(from + i)));
  }
}

}  // namespace trireme::onednn::pointwise
