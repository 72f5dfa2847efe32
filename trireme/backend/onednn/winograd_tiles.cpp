#include "trireme/backend/onednn/winograd_tiles.hpp"

#include <algorithm>

#include "trireme/backend/onednn/winograd_transform.hpp"

namespace trireme::onednn::winograd {
namespace {

// Takes the place of rows outside of the image.
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
  std::int64_t offset[kInput];  // of the nearest column that there is, so that nothing else is asked of memory
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

}  // namespace trireme::onednn::winograd
