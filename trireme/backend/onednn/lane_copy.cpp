#include "trireme/backend/onednn/lane_copy.hpp"

#include "trireme/base/bfloat16.hpp"
#include "trireme/base/simd.hpp"

namespace trireme::onednn {
namespace {

template <typename Element>
TRIREME_INLINE void copy_lanes_of(const Element* src, Element* dst, std::int64_t positions, std::int64_t lanes,
                                  std::int64_t length) {
  for (std::int64_t position = 0; position < positions; ++position) {
    for (std::int64_t i = 0; i < length; ++i) dst[position * lanes + i] = src[position * lanes + i];
  }
}

TRIREME_SIMD void copy_lanes(const float* src, float* dst, std::int64_t positions, std::int64_t lanes,
                             std::int64_t length) {
  copy_lanes_of(src, dst, positions, lanes, length);
}
TRIREME_SIMD void copy_lanes(const BFloat16* src, BFloat16* dst, std::int64_t positions, std::int64_t lanes,
                             std::int64_t length) {
  copy_lanes_of(src, dst, positions, lanes, length);
}

}  // namespace

LaneCopy::LaneCopy(const ChannelView& whole, const ChannelView& part, std::int64_t begin) : whole_(whole), part_(part) {
  const std::int64_t lanes = whole.lanes;
  for (std::int64_t c = 0; c < part.channels;) {
    const std::int64_t length = std::min({lanes - c % lanes, lanes - (begin + c) % lanes, part.channels - c});
    runs_.push_back({.whole_block = (begin + c) / lanes,
                     .whole_lane = (begin + c) % lanes,
                     .part_block = c / lanes,
                     .part_lane = c % lanes,
                     .length = length});
    c += length;
  }
}

template <typename Element>
void LaneCopy::to_whole(const Element* part, Element* whole) const {
#pragma omp for collapse(2) schedule(static) nowait
  for (std::int64_t n = 0; n < whole_.batch; ++n) {
    for (std::size_t i = 0; i < runs_.size(); ++i) {
      const Run& run = runs_[i];
      copy_lanes(part + part_.offset(n, run.part_block) + run.part_lane,
                 whole + whole_.offset(n, run.whole_block) + run.whole_lane, whole_.positions, whole_.lanes,
                 run.length);
    }
  }
}

template <typename Element>
void LaneCopy::to_part(const Element* whole, Element* part) const {
#pragma omp for collapse(2) schedule(static) nowait
  for (std::int64_t n = 0; n < whole_.batch; ++n) {
    for (std::size_t i = 0; i < runs_.size(); ++i) {
      const Run& run = runs_[i];
      copy_lanes(whole + whole_.offset(n, run.whole_block) + run.whole_lane,
                 part + part_.offset(n, run.part_block) + run.part_lane, whole_.positions, whole_.lanes, run.length);
    }
  }
}

template <typename Element>
void clear_padding(const ChannelView& view, Element* data) {
  if (!view.padded()) return;
  const std::int64_t real = view.channels % view.lanes;
#pragma omp for schedule(static) nowait
  for (std::int64_t n = 0; n < view.batch; ++n) {
    Element* block = data + view.offset(n, view.blocks - 1);
    for (std::int64_t position = 0; position < view.positions; ++position, block += view.lanes) {
      std::fill(block + real, block + view.lanes, Element{});
    }
  }
}

template void LaneCopy::to_whole(const float*, float*) const;
template void LaneCopy::to_whole(const BFloat16*, BFloat16*) const;
template void LaneCopy::to_part(const float*, float*) const;
template void LaneCopy::to_part(const BFloat16*, BFloat16*) const;
template void clear_padding(const ChannelView&, float*);
template void clear_padding(const ChannelView&, BFloat16*);

}  // namespace trireme::onednn
