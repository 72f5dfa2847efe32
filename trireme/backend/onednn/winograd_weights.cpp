#include "trireme/backend/onednn/winograd_weights.hpp"

#include "trireme/backend/onednn/block_transpose.hpp"
#include "trireme/backend/onednn/winograd_transform.hpp"

namespace trireme::onednn::winograd {
namespace {

constexpr int kTaps = 9;
constexpr std::int64_t kTapElements = kLanes * kLanes;
constexpr std::int64_t kBlockElements = kTaps * kTapElements;

}  // namespace

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

}  // namespace trireme::onednn::winograd
