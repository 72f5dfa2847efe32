// Transposes 16 x 16 weights with AVX-512, between the two blocked layouts of weights. Used by winograd_kernels.cpp.
#pragma once

#include "trireme/backend/onednn/winograd_transform.hpp"

namespace trireme::onednn::winograd {

// to[column][row] = from[row][column], in four rounds that swap ever larger parts of the vectors.
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

}  // namespace trireme::onednn::winograd
