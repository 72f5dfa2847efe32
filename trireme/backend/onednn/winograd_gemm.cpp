#include "trireme/backend/onednn/winograd_gemm.hpp"

#include <array>
#include <utility>

#include "trireme/backend/onednn/winograd_transform.hpp"

namespace trireme::onednn::winograd {
namespace {

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

}  // namespace trireme::onednn::winograd
