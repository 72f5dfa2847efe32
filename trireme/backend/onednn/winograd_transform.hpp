// Winograd's F(4x4, 3x3) transforms on vectors of 16 channels: Y = Aᵀ[(G g Gᵀ) ⊙ (Bᵀ d B)]A for 6x6 values d, 3x3
// weights g and 4x4 results Y (Lavin and Gray, 2016), and their transposes for the gradient of the weights. Used by
// winograd_*.cpp in functions compiled for AVX-512.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "trireme/backend/onednn/blocked_convolution.hpp"
#include "trireme/backend/onednn/vectors.hpp"

// Always inlined, so that values stay in registers between these functions.
#define TRIREME_AVX512_INLINE __attribute__((target("avx512f,fma"), always_inline))

namespace trireme::onednn::winograd {

inline constexpr std::int64_t kOutput = 4;                // extent of a tile's results
inline constexpr std::int64_t kInput = 6;                 // extent of the values they depend on
inline constexpr std::int64_t kPoints = kInput * kInput;  // products per tile and pair of channels

// std::array's operators would be calls that are not compiled for AVX-512.
template <int size>
struct Vectors {
  __m512 v[size];
};

TRIREME_AVX512_INLINE inline __m512 lanes(float value) { return _mm512_set1_ps(value); }
// a + factor·b, a − factor·b
TRIREME_AVX512_INLINE inline __m512 plus(__m512 a, float factor, __m512 b) {
  return _mm512_fmadd_ps(lanes(factor), b, a);
}
TRIREME_AVX512_INLINE inline __m512 minus(__m512 a, float factor, __m512 b) {
  return _mm512_fnmadd_ps(lanes(factor), b, a);
}

// Hides where the pointer comes from; else the compiler computes the addresses of all points first and spills them.
template <typename Element>
TRIREME_AVX512_INLINE inline Element* opaque(Element* pointer) {
  asm("" : "+r"(pointer));
  return pointer;
}

// Rows 1 to 4 of Bᵀ d, which need only d1 to d4.
TRIREME_AVX512_INLINE inline Vectors<4> input_middle(__m512 d1, __m512 d2, __m512 d3, __m512 d4) {
  const __m512 even = minus(d4, 4, d2), odd = minus(d3, 4, d1);
  const __m512 even2 = _mm512_sub_ps(d4, d2), odd2 = _mm512_sub_ps(d3, d1);
  return {{_mm512_add_ps(even, odd), _mm512_sub_ps(even, odd), plus(even2, 2, odd2), minus(even2, 2, odd2)}};
}
// Rows 0 (of d0, d2, d4) and 5 (of d1, d3, d5).
TRIREME_AVX512_INLINE inline __m512 input_edge(__m512 a, __m512 b, __m512 c) { return plus(minus(c, 5, b), 4, a); }

TRIREME_AVX512_INLINE inline Vectors<6> input_row(const __m512* d) {
  const Vectors<4> middle = input_middle(d[1], d[2], d[3], d[4]);
  return {
      {input_edge(d[0], d[2], d[4]), middle.v[0], middle.v[1], middle.v[2], middle.v[3], input_edge(d[1], d[3], d[5])}};
}

// Bᵀ d B: load(i, j) returns d, store(i, values) takes row i. Loads some values twice: 36 do not fit the registers.
template <typename Load, typename Store>
TRIREME_AVX512_INLINE inline void transform_input(const Load& load, const Store& store) {
  {
    __m512 rows[4][6];
#pragma GCC unroll 6
    for (int j = 0; j < 6; ++j) {
      const Vectors<4> column = input_middle(load(1, j), load(2, j), load(3, j), load(4, j));
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) rows[i][j] = column.v[i];
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) store(i + 1, input_row(rows[i]));
  }
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i) {
    __m512 row[6];
#pragma GCC unroll 6
    for (int j = 0; j < 6; ++j) row[j] = input_edge(load(i, j), load(i + 2, j), load(i + 4, j));
    store(i * 5, input_row(row));
  }
}

// Aᵀ m
TRIREME_AVX512_INLINE inline Vectors<4> output_row(const __m512* m) {
  const __m512 s = _mm512_add_ps(m[1], m[2]), d = _mm512_sub_ps(m[1], m[2]);
  const __m512 p = _mm512_add_ps(m[3], m[4]), q = _mm512_sub_ps(m[3], m[4]);
  Vectors<4> o;
  o.v[0] = _mm512_add_ps(_mm512_add_ps(m[0], s), p);
  o.v[1] = plus(d, 2, q);
  o.v[2] = plus(s, 4, p);
  o.v[3] = _mm512_add_ps(plus(d, 8, q), m[5]);
  return o;
}

// Aᵀ M A: load(point) returns M, row(i, values) takes the four results of a row.
template <typename Load, typename Row>
TRIREME_AVX512_INLINE inline void transform_output(const Load& load, const Row& row) {
  __m512 columns[4][6];
#pragma GCC unroll 6
  for (int j = 0; j < 6; ++j) {
    __m512 m[6];
#pragma GCC unroll 6
    for (int i = 0; i < 6; ++i) m[i] = load(i * 6 + j);
    const Vectors<4> o = output_row(m);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) columns[i][j] = o.v[i];
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) row(i, output_row(columns[i]));
}

// G g
TRIREME_AVX512_INLINE inline Vectors<6> weights_row(__m512 g0, __m512 g1, __m512 g2) {
  Vectors<6> o;
  const __m512 ends = _mm512_mul_ps(_mm512_add_ps(g0, g2), lanes(-1.0f / 6));
  const __m512 wide = plus(_mm512_mul_ps(g0, lanes(1.0f / 24)), 1.0f / 6, g2);
  o.v[0] = _mm512_mul_ps(g0, lanes(1.0f / 4));
  o.v[1] = plus(ends, -1.0f / 6, g1);
  o.v[2] = plus(ends, 1.0f / 6, g1);
  o.v[3] = plus(wide, 1.0f / 12, g1);
  o.v[4] = plus(wide, -1.0f / 12, g1);
  o.v[5] = g2;
  return o;
}

// G g Gᵀ: load(tap) returns g, store(point, value) takes the results.
template <typename Load, typename Store>
TRIREME_AVX512_INLINE inline void transform_weights(const Load& load, const Store& store) {
  __m512 rows[6][3];
#pragma GCC unroll 3
  for (int j = 0; j < 3; ++j) {
    const Vectors<6> o = weights_row(load(j), load(3 + j), load(6 + j));
#pragma GCC unroll 6
    for (int i = 0; i < 6; ++i) rows[i][j] = o.v[i];
  }
#pragma GCC unroll 6
  for (int i = 0; i < 6; ++i) {
    const Vectors<6> o = weights_row(rows[i][0], rows[i][1], rows[i][2]);
#pragma GCC unroll 6
    for (int j = 0; j < 6; ++j) store(i * 6 + j, o.v[j]);
  }
}

// A y
TRIREME_AVX512_INLINE inline Vectors<6> gradient_row(__m512 y0, __m512 y1, __m512 y2, __m512 y3) {
  const __m512 even = _mm512_add_ps(y0, y2), odd = _mm512_add_ps(y1, y3);
  const __m512 even2 = plus(y0, 4, y2), odd2 = plus(y1, 4, y3);
  return {{y0, _mm512_add_ps(even, odd), _mm512_sub_ps(even, odd), plus(even2, 2, odd2), minus(even2, 2, odd2), y3}};
}

// A y Aᵀ: load(i, j) returns a tile's gradient, store(i, values) takes row i; point (1, 1) is the sum of all y.
template <typename Load, typename Store>
TRIREME_AVX512_INLINE inline void transform_gradient(const Load& load, const Store& store) {
  __m512 rows[6][4];
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) {
    const Vectors<6> column = gradient_row(load(0, j), load(1, j), load(2, j), load(3, j));
#pragma GCC unroll 6
    for (int i = 0; i < 6; ++i) rows[i][j] = column.v[i];
  }
#pragma GCC unroll 6
  for (int i = 0; i < 6; ++i) store(i, gradient_row(rows[i][0], rows[i][1], rows[i][2], rows[i][3]));
}

// Gᵀ s
TRIREME_AVX512_INLINE inline Vectors<3> weights_gradient_row(const __m512* s) {
  const __m512 sum = _mm512_add_ps(s[1], s[2]), difference = _mm512_sub_ps(s[2], s[1]);
  const __m512 sum2 = _mm512_add_ps(s[3], s[4]), difference2 = _mm512_sub_ps(s[3], s[4]);
  return {{plus(minus(_mm512_mul_ps(s[0], lanes(1.0f / 4)), 1.0f / 6, sum), 1.0f / 24, sum2),
           plus(_mm512_mul_ps(difference, lanes(1.0f / 6)), 1.0f / 12, difference2),
           plus(s[5], 1.0f / 6, _mm512_sub_ps(sum2, sum))}};
}

// Gᵀ S G: load(point) returns S, store(tap, value) takes the results.
template <typename Load, typename Store>
TRIREME_AVX512_INLINE inline void transform_weights_gradient(const Load& load, const Store& store) {
  __m512 rows[3][6];
#pragma GCC unroll 6
  for (int j = 0; j < 6; ++j) {
    __m512 s[6];
#pragma GCC unroll 6
    for (int i = 0; i < 6; ++i) s[i] = load(i * 6 + j);
    const Vectors<3> column = weights_gradient_row(s);
#pragma GCC unroll 3
    for (int i = 0; i < 3; ++i) rows[i][j] = column.v[i];
  }
#pragma GCC unroll 3
  for (int i = 0; i < 3; ++i) {
    const Vectors<3> o = weights_gradient_row(rows[i]);
#pragma GCC unroll 3
    for (int j = 0; j < 3; ++j) store(i * 3 + j, o.v[j]);
  }
}

}  // namespace trireme::onednn::winograd
