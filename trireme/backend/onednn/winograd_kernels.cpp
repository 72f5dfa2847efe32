#include "trireme/backend/onednn/winograd_kernels.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "trireme/backend/onednn/winograd_transform.hpp"

namespace trireme::onednn::winograd {
namespace {

// Replaces rows outside the image.
alignas(64) constexpr float kZeroRow[kInput * kLanes] = {};

bool inside(std::int64_t first, std::int64_t count, std::int64_t extent) {
  return first >= 0 && first + count <= extent;
}

TRIREME_AVX512_INLINE inline __m512 finished(__m512 value, const Epilogue& epilogue, __m512 bias, std::int64_t offset) {
  value = _mm512_add_ps(value, bias);
  if (epilogue.addend != nullptr) value = _mm512_add_ps(value, _mm512_loadu_ps(epilogue.addend + offset));
  if (epilogue.relu) value = _mm512_maskz_max_ps(0xffff, _mm512_setzero_ps(), value);
  return value;
}

TRIREME_AVX512_INLINE inline void store_row(float* to, int i, std::int64_t stride, const Vectors<6>& values) {
  float* const low = opaque(to + i * kInput * stride);
  float* const high = low + 3 * stride;
#pragma GCC unroll 3
  for (int j = 0; j < 3; ++j) {
    _mm512_store_ps(low + j * stride, values.v[j]);
    _mm512_store_ps(high + j * stride, values.v[3 + j]);
  }
}

// Between the two blocked layouts of weights: to[column][row] = from[row][column], in four rounds that swap ever larger
// parts of the vectors.
TRIREME_AVX512_INLINE inline void transpose(const float* from, float* to) {
  __m512 a[kLanes], b[kLanes];
#pragma GCC unroll 16
  for (int i = 0; i < kLanes; ++i) a[i] = _mm512_loadu_ps(from + i * kLanes);
#pragma GCC unroll 8
  for (int i = 0; i < kLanes; i += 2) {
    b[i] = _mm512_maskz_unpacklo_ps(0xffff, a[i], a[i + 1]);
    b[i + 1] = _mm512_maskz_unpackhi_ps(0xffff, a[i], a[i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < kLanes; i += 4) {
    a[i] = _mm512_maskz_shuffle_ps(0xffff, b[i], b[i + 2], 0x44);
    a[i + 1] = _mm512_maskz_shuffle_ps(0xffff, b[i], b[i + 2], 0xee);
    a[i + 2] = _mm512_maskz_shuffle_ps(0xffff, b[i + 1], b[i + 3], 0x44);
    a[i + 3] = _mm512_maskz_shuffle_ps(0xffff, b[i + 1], b[i + 3], 0xee);
  }
  // a[4·q + c] has column 4·k + c of rows 4·q to 4·q + 3 in its quarter k.
#pragma GCC unroll 4
  for (int c = 0; c < 4; ++c) {
    const __m512 low01 = _mm512_maskz_shuffle_f32x4(0xffff, a[c], a[4 + c], 0x44);
    const __m512 high01 = _mm512_maskz_shuffle_f32x4(0xffff, a[c], a[4 + c], 0xee);
    const __m512 low23 = _mm512_maskz_shuffle_f32x4(0xffff, a[8 + c], a[12 + c], 0x44);
    const __m512 high23 = _mm512_maskz_shuffle_f32x4(0xffff, a[8 + c], a[12 + c], 0xee);
    _mm512_store_ps(to + c * kLanes, _mm512_maskz_shuffle_f32x4(0xffff, low01, low23, 0x88));
    _mm512_store_ps(to + (4 + c) * kLanes, _mm512_maskz_shuffle_f32x4(0xffff, low01, low23, 0xdd));
    _mm512_store_ps(to + (8 + c) * kLanes, _mm512_maskz_shuffle_f32x4(0xffff, high01, high23, 0x88));
    _mm512_store_ps(to + (12 + c) * kLanes, _mm512_maskz_shuffle_f32x4(0xffff, high01, high23, 0xdd));
  }
}

constexpr int kTaps = 9;
constexpr std::int64_t kTapElements = kLanes * kLanes;
constexpr std::int64_t kBlockElements = kTaps * kTapElements;

template <int rows, int vectors>
TRIREME_AVX512 void product(std::int64_t blocks, const float* v, const float* u, float* m) {
  __m512 sums[rows][vectors];
#pragma GCC unroll 14
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 2
    for (int n = 0; n < vectors; ++n) sums[r][n] = _mm512_setzero_ps();
  }
  for (std::int64_t block = 0; block < blocks; ++block) {
#pragma GCC unroll 4
    for (int i = 0; i < kLanes; ++i) {
      __m512 weights[vectors];
#pragma GCC unroll 2
      for (int n = 0; n < vectors; ++n) weights[n] = _mm512_load_ps(u + n * kLanes);
      u += vectors * kLanes;
#pragma GCC unroll 14
      for (int r = 0; r < rows; ++r) {
        const __m512 value = lanes(v[r * kLanes + i]);
#pragma GCC unroll 2
        for (int n = 0; n < vectors; ++n) sums[r][n] = _mm512_fmadd_ps(value, weights[n], sums[r][n]);
      }
    }
    v += rows * kLanes;
  }
#pragma GCC unroll 14
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 2
    for (int n = 0; n < vectors; ++n) _mm512_store_ps(m + (r * vectors + n) * kLanes, sums[r][n]);
  }
}

template <int... index>
constexpr auto products(std::integer_sequence<int, index...>) {
  return std::array<std::array<RowProduct, kMaxVectors>, kMaxRows>{
      {std::array<RowProduct, kMaxVectors>{product<index + 1, 1>, product<index + 1, 2>}...}};
}

}  // namespace

Tiling::Tiling(const Images& results)
    : images(results.count), rows(ceil_div(results.height, kOutput)), columns(ceil_div(results.width, kOutput)) {}

Tile Tiling::operator[](std::int64_t index) const {
  const std::int64_t row = index / columns;
  return {row / rows, row % rows * kOutput, index % columns * kOutput};
}

TRIREME_AVX512 void load_input(const Images& images, const float* src, const Tile& tile, std::int64_t block, float* to,
                               std::int64_t stride) {
  const std::int64_t width = images.width * kLanes;
  const float* const plane = src + (tile.image * images.blocks + block) * images.height * width;
  const auto store = [=](int i, const Vectors<6>& values) TRIREME_AVX512_INLINE { store_row(to, i, stride, values); };
  const float* row[kInput];
  if (inside(tile.row, kInput, images.height) && inside(tile.column, kInput, images.width)) {
    const float* const first = plane + tile.row * width + tile.column * kLanes;
#pragma GCC unroll 6
    for (int i = 0; i < kInput; ++i) row[i] = opaque(first + i * width);
    transform_input([&](int i, int j) TRIREME_AVX512_INLINE { return _mm512_loadu_ps(row[i] + j * kLanes); }, store);
    return;
  }
  __mmask16 column[kInput];
  std::int64_t offset[kInput];  // of the nearest existing column, so that no other memory is read
#pragma GCC unroll 6
  for (int i = 0; i < kInput; ++i) {
    row[i] = inside(tile.row + i, 1, images.height) ? plane + (tile.row + i) * width + tile.column * kLanes : kZeroRow;
    column[i] = static_cast<__mmask16>(inside(tile.column + i, 1, images.width) ? 0xffff : 0);
    offset[i] = (std::clamp<std::int64_t>(tile.column + i, 0, images.width - 1) - tile.column) * kLanes;
  }
  transform_input(
      [&](int i, int j) TRIREME_AVX512_INLINE { return _mm512_maskz_loadu_ps(column[j], row[i] + offset[j]); }, store);
}

TRIREME_AVX512 void load_gradient(const Images& images, const float* diff, const Tile& tile, std::int64_t block,
                                  float* to, std::int64_t stride) {
  const std::int64_t width = images.width * kLanes;
  const float* const plane = diff + (tile.image * images.blocks + block) * images.height * width;
  const float* row[kOutput];
  __mmask16 column[kOutput];
#pragma GCC unroll 4
  for (int i = 0; i < kOutput; ++i) {
    row[i] = tile.row + i < images.height ? plane + (tile.row + i) * width + tile.column * kLanes : kZeroRow;
    column[i] = static_cast<__mmask16>(tile.column + i < images.width ? 0xffff : 0);
  }
  transform_gradient([&](int i, int j)
                         TRIREME_AVX512_INLINE { return _mm512_maskz_loadu_ps(column[j], row[i] + j * kLanes); },
                     [=](int i, const Vectors<6>& values) TRIREME_AVX512_INLINE { store_row(to, i, stride, values); });
}

TRIREME_AVX512 void store_output(const Images& images, const Tile& tile, std::int64_t block, const float* from,
                                 std::int64_t stride, const Epilogue& epilogue, float* dst) {
  const std::int64_t width = images.width * kLanes;
  const std::int64_t first =
      ((tile.image * images.blocks + block) * images.height + tile.row) * width + tile.column * kLanes;
  const __m512 bias = epilogue.bias != nullptr ? _mm512_loadu_ps(epilogue.bias + block * kLanes) : _mm512_setzero_ps();
  const auto load = [=](int point) TRIREME_AVX512_INLINE { return _mm512_load_ps(from + point * stride); };
  const auto rows = static_cast<int>(std::min(kOutput, images.height - tile.row));
  const auto columns = static_cast<int>(std::min(kOutput, images.width - tile.column));
  transform_output(load, [&](int i, const Vectors<4>& values) TRIREME_AVX512_INLINE {
    if (i >= rows) return;
#pragma GCC unroll 4
    for (int j = 0; j < kOutput; ++j) {
      if (j >= columns) break;
      const std::int64_t offset = first + i * width + j * kLanes;
      _mm512_storeu_ps(dst + offset, finished(values.v[j], epilogue, bias, offset));
    }
  });
}

TRIREME_AVX512 void load_weights(const WeightsOrder& order, const float* block, float* to, std::int64_t point_stride,
                                 std::int64_t inner_stride) {
  alignas(64) float turned[kBlockElements];
  if (!order.rows_are_inner) {
    for (int tap = 0; tap < kTaps; ++tap) transpose(block + tap * kTapElements, turned + tap * kTapElements);
    block = turned;
  }
  const std::int64_t first_tap = order.flipped ? kTaps - 1 : 0;
  const std::int64_t tap_stride = order.flipped ? -kTapElements : kTapElements;
  block += first_tap * kTapElements;
  for (int i = 0; i < kLanes; ++i) {
    transform_weights(
        [=](int tap) TRIREME_AVX512_INLINE { return _mm512_loadu_ps(block + tap * tap_stride + i * kLanes); },
        [=](int point, __m512 value)
            TRIREME_AVX512_INLINE { _mm512_store_ps(to + point * point_stride + i * inner_stride, value); });
  }
}

TRIREME_AVX512 void store_weights_gradient(const float* from, std::int64_t count, std::int64_t stride, float* block) {
  for (int row = 0; row < kLanes; ++row) {
    transform_weights_gradient(
        [=](int point) TRIREME_AVX512_INLINE {
          const float* const first = from + point * kTapElements + row * kLanes;
          __m512 sum = _mm512_load_ps(first);
          for (std::int64_t i = 1; i < count; ++i) sum = _mm512_add_ps(sum, _mm512_load_ps(first + i * stride));
          return sum;
        },
        [=](int tap, __m512 value)
            TRIREME_AVX512_INLINE { _mm512_storeu_ps(block + tap * kTapElements + row * kLanes, value); });
  }
}

RowProduct row_product(int rows, int vectors) {
  static constexpr auto kProducts = products(std::make_integer_sequence<int, kMaxRows>());
  return kProducts[rows - 1][vectors - 1];
}

TRIREME_AVX512 void block_product(std::int64_t count, const float* x, const float* y, bool add, float* s) {
  __m512 sums[kLanes];
#pragma GCC unroll 16
  for (int r = 0; r < kLanes; ++r) sums[r] = add ? _mm512_load_ps(s + r * kLanes) : _mm512_setzero_ps();
  for (std::int64_t i = 0; i < count; ++i) {
    const __m512 values = _mm512_load_ps(y + i * kLanes);
#pragma GCC unroll 16
    for (int r = 0; r < kLanes; ++r) sums[r] = _mm512_fmadd_ps(lanes(x[i * kLanes + r]), values, sums[r]);
  }
#pragma GCC unroll 16
  for (int r = 0; r < kLanes; ++r) _mm512_store_ps(s + r * kLanes, sums[r]);
}

TRIREME_AVX512 void sum_vectors(std::int64_t count, const float* from, bool add, float* to) {
  __m512 sum = add ? _mm512_load_ps(to) : _mm512_setzero_ps();
  for (std::int64_t i = 0; i < count; ++i) sum = _mm512_add_ps(sum, _mm512_load_ps(from + i * kLanes));
  _mm512_store_ps(to, sum);
}

}  // namespace trireme::onednn::winograd
