// Loops over channels: bias, addend and ReLU after a product if the library does not fuse them; the gradient of a bias.
#pragma once

#include "trireme/backend/cuda/device.hpp"

namespace trireme::cuda {

// A tensor as outer x channels x inner, row-major. Channels last: inner is 1; plain: outer is the batch.
struct ChannelLoops {
  std::int64_t outer = 0, channels = 0, inner = 0;
  std::int64_t elements() const { return outer * channels * inner; }
};

// Rank 2 or more, plain or channels last; channels are axis 1.
inline ChannelLoops channel_loops(const Shape& shape, const Layout& layout) {
  const std::int64_t rows = shape[0] * shape[1];
  const std::int64_t inner = rows == 0 ? 0 : shape.elements() / rows;
  const bool channels_last = layout.order.back() == 1;
  return channels_last ? ChannelLoops{.outer = shape[0] * inner, .channels = shape[1], .inner = 1}
                       : ChannelLoops{.outer = shape[0], .channels = shape[1], .inner = inner};
}

// dst = src + bias of the channel + addend, at least 0 if relu. bias and addend may be null; dst may be src or addend.
struct Epilogue {
  const void* src = nullptr;
  const float* bias = nullptr;
  const void* addend = nullptr;
  void* dst = nullptr;
  bool relu = false;
};
void launch_epilogue(const CudaDevice& device, const ChannelLoops& loops, DataType type, const Epilogue& epilogue);

// sums[channel] = sum over all other axes, in an order that depends only on the extents. scratch: for partial sums.
std::int64_t channel_sums_scratch_bytes(const ChannelLoops& loops);
void launch_channel_sums(const CudaDevice& device, const ChannelLoops& loops, DataType type, const void* src,
                         float* sums, float* scratch);

}  // namespace trireme::cuda
