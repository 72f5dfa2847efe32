// In which formats the CUDA backend's kernels take and give tensors: in the precision's type, channels last where there
// are tensor cores for it, unless the user wants otherwise. No layout but plain and channels last is used, so kernels
// see strides or plain vectors; only images of few channels go to their convolution in a layout of their own.
#pragma once

#include "trireme/plan/backend.hpp"

namespace trireme::cuda {

// The layout for activations: what the user forces, or what tensor cores want. Without them, in fp32, cuDNN is faster
// in plain order: 1.6 times for ResNet-50 on an H200.
inline Layout activation_layout(const KernelRequest& request, int rank) {
  const bool automatic = request.data_format == DataFormat::automatic;
  const bool plain = automatic ? request.precision == Precision::fp32 : request.data_format == DataFormat::nchw;
  return plain ? Layout::plain(rank) : Layout::channels_last(rank);
}

inline DataType activation_type(Precision precision) {
  switch (precision) {
    case Precision::bf16:
      return DataType::bf16;
    case Precision::fp16:
      return DataType::f16;
    case Precision::fp32:
    case Precision::tf32:
      break;
  }
  return DataType::f32;
}

// An activation as convolutions and their like take it.
inline Format activation_format(const KernelRequest& request, int rank) {
  return {activation_layout(request, rank), activation_type(request.precision)};
}

inline bool is_simple(const Layout& layout) {
  const int rank = static_cast<int>(layout.order.size());
  return layout.blocks.empty() && (layout == Layout::plain(rank) || layout == Layout::channels_last(rank));
}

// Images of few channels as tensor cores want them: fold x fold neighbouring pixels lie together, each with its
// channels filled up with zeros, and are one pixel of many channels to cuDNN.
inline constexpr std::int64_t kMostImageChannels = 3;
inline std::int64_t filled_channels(int fold, DataType type) { return fold == 1 ? 16 / size_of(type) : 4; }
inline Layout image_layout(int fold, DataType type) {
  Layout layout = Layout::channels_last(4);
  if (fold > 1) layout.blocks = {{2, fold}, {3, fold}};
  layout.blocks.push_back({1, filled_channels(fold, type)});
  return layout;
}

// As it comes, where kernels that follow their input can take it so.
inline Format as_it_comes(const TensorDesc& input) {
  return {is_simple(input.layout) ? input.layout : Layout::plain(input.shape.rank()), input.dtype};
}

// The layout that a consumer needs of the first output, where there is one that kernels can give; else nullptr.
inline const Layout* simple_wish(const KernelRequest& request) {
  const Layout* wish = request.output_wish.empty() ? nullptr : request.output_wish[0];
  return wish != nullptr && is_simple(*wish) ? wish : nullptr;
}

}  // namespace trireme::cuda
