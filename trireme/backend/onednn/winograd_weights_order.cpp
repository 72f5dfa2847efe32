#include "trireme/backend/onednn/winograd_weights_order.hpp"

#include "trireme/backend/onednn/block_transpose.hpp"
#include "trireme/backend/onednn/winograd_transform.hpp"

namespace trireme::onednn::winograd {
namespace {

constexpr int kTaps = 9;
constexpr std::int64_t kTapElements = kLanes * kLanes;
constexpr std::int64_t kBlockElements = kTaps * kTapElements;

std::int64_t blocks_of(std::int64_t channels) { return (channels + kLanes - 1) / kLanes; }

// Axis whose index is the row of a block, where the layout is one of the two: 1 for ABcd16b16a, 0 for ABcd16a16b.
std::optional<int> row_axis(const Layout& layout) {
  if (layout.order != Layout::plain(4).order || layout.blocks.size() != 2) return std::nullopt;
  const Layout::Block& rows = layout.blocks[0];
  const Layout::Block& columns = layout.blocks[1];
  if (rows.size != kLanes || columns.size != kLanes || rows.axis + columns.axis != 1) return std::nullopt;
  return rows.axis;
}

}  // namespace

std::optional<WeightsOrder> WeightsOrder::forward(const Shape& weights, const Layout& layout) {
  const auto axis = row_axis(layout);
  if (!axis) return std::nullopt;
  return WeightsOrder{.inner_stride = kBlockElements,
                      .outer_stride = kBlockElements * blocks_of(weights[1]),
                      .rows_are_inner = *axis == 1,
                      .flipped = false};
}

std::optional<WeightsOrder> WeightsOrder::backward_data(const Shape& weights, const Layout& layout) {
  const auto axis = row_axis(layout);
  if (!axis) return std::nullopt;
  return WeightsOrder{.inner_stride = kBlockElements * blocks_of(weights[1]),
                      .outer_stride = kBlockElements,
                      .rows_are_inner = *axis == 0,
                      .flipped = true};
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

}  // namespace trireme::onednn::winograd
