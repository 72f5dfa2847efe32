// The formats of the CUDA backend's tensors: the precision's type, channels last for tensor cores, unless the user
// wants otherwise. Kernels see strides or flat arrays; only images with few channels have a layout of their own.
#pragma once

#include "trireme/plan/backend.hpp"

namespace trireme::cuda {

// What the user forces, or what tensor cores prefer. fp32 does not use them and is faster in plain order: 1.6 times for
// ResNet-50 on an H200.
inline Layout activation_layout(const KernelRequest& request, int rank) {
  const bool automatic = request.data_format == DataFormat::automatic;
  const bool plain = automatic ? request.precision == Precision::fp32 : request.data_format == DataFormat::nchw;
  return plain ? Layout::plain(rank) : Layout::channels_last(rank);
}

inline DataType activation_type(Precision precision) {
  if (precision == Precision::bf16) return DataType::bf16;
  return precision == Precision::fp16 ? DataType::f16 : DataType::f32;
}

inline Format activation_format(const KernelRequest& request, int rank) {
  return {activation_layout(request, rank), activation_type(request.precision)};
}

inline bool is_simple(const Layout& layout) {
  const int rank = static_cast<int>(layout.order.size());
  return layout.blocks.empty() && (layout == Layout::plain(rank) || layout == Layout::channels_last(rank));
}

// For images with few channels: fold x fold neighboring pixels, each filled up with zero channels, are one pixel of
// many channels to cuDNN, as tensor cores prefer.
inline constexpr std::int64_t kMostImageChannels = 3;
inline std::int64_t filled_channels(int fold, DataType type) { return fold == 1 ? 16 / size_of(type) : 4; }
inline Layout image_layout(int fold, DataType type) {
  Layout layout = Layout::channels_last(4);
  if (fold > 1) layout.blocks = {{2, fold}, {3, fold}};
  layout.blocks.push_back({1, filled_channels(fold, type)});
  return layout;
}

// The input's own format if its layout is simple, else plain.
inline Format as_it_comes(const TensorDesc& input) {
  return {is_simple(input.layout) ? input.layout : Layout::plain(input.shape.rank()), input.dtype};
}

// The layout that a consumer wants for the first output, if it is simple; else nullptr.
inline const Layout* simple_wish(const KernelRequest& request) {
  const Layout* wish = request.output_wish.empty() ? nullptr : request.output_wish[0];
  return wish != nullptr && is_simple(*wish) ? wish : nullptr;
}

}  // namespace trireme::cuda
