// y = activation((x − mean)·scale + shift + addend) per channel, over any layout that channel_view knows: the last part
// of batch norm in training, the whole of it in inference, and bias.
#pragma once

#include "trireme/backend/onednn/channel_loops.hpp"

namespace trireme::onednn {

// One value per channel and padded lane; padded lanes have zeros, which keeps the padding of y zero.
struct ChannelAffine {
  float* mean;
  float* scale;
  float* shift;

  static std::int64_t bytes(const ChannelView& view) {
    return 3 * view.padded_channels() * static_cast<std::int64_t>(sizeof(float));
  }
  ChannelAffine(const ChannelView& view, float* memory)
      : mean(memory), scale(memory + view.padded_channels()), shift(memory + 2 * view.padded_channels()) {}
  void set(std::int64_t channel, float mean_, float scale_, float shift_) const {
    mean[channel] = mean_;
    scale[channel] = scale_;
    shift[channel] = shift_;
  }
};

// Shares the work among the threads of the OpenMP region it is called in.
template <typename Element>
void apply_affine(const Strips& strips, const ChannelAffine& affine, const AffineOperands<Element>& operands);
// One group of strips, by the calling thread; from the last to the first, because what was read last is in the cache.
template <typename Element>
void apply_affine(const Strips& strips, std::int64_t group, const ChannelAffine& affine,
                  const AffineOperands<Element>& operands);

}  // namespace trireme::onednn
