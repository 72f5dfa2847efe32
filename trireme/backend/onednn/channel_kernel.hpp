// Own kernels that compute per channel, for any layout that channel_view can express: batch norm and bias.
#pragma once

#include "trireme/backend/onednn/channel_loops.hpp"
#include "trireme/backend/onednn/own_kernel.hpp"

namespace trireme::onednn {

inline ChannelView view_of_src(const KernelRequest& request) {
  const TensorDesc& src = request.inputs[0];
  return *channel_view(src.shape, viewable(src.shape, src.layout));
}

// A kernel that calls function(Element{}, operands, context) with src's type; tensors of src's shape have its format.
template <typename Function>
KernelChoice channel_kernel(const KernelRequest& request, Function function) {
  const TensorDesc& src = request.inputs[0];
  KernelChoice choice = with_element(src.dtype, [&]<typename Element>(Element element) {
    return own_kernel(request, [element, function](const Operands& operands, const RunContext& context) {
      function(element, operands, context);
    });
  });
  const Format format(viewable(src.shape, src.layout), src.dtype);
  for (std::size_t i = 0; i < choice.inputs.size(); ++i) {
    if (request.inputs[i].shape == src.shape) choice.inputs[i] = format;
  }
  for (std::size_t i = 0; i < choice.outputs.size(); ++i) {
    if (request.node.outputs[i].shape == src.shape) choice.outputs[i] = format;
  }
  return choice;
}

// y = activation((x − mean)·scale + shift + addend): bias, inference batch norm, and the last pass of training's. One
// value per channel and padded lane; zeros in padded lanes keep the padding of y zero.
struct ChannelAffine {
  using Columns = AffineColumns;
  float *mean, *scale, *shift;

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
  void spread(const Strip& strip, AffineColumns& columns) const {
    spread_lanes(strip, mean, columns.mean);
    spread_lanes(strip, scale, columns.scale);
    spread_lanes(strip, shift, columns.shift);
  }
};

// Shares the work among the threads of the calling OpenMP region. values: ChannelAffine or another class with Columns.
template <typename Values, typename Tensors>
void apply_channels(const Strips& strips, const Values& values, const Tensors& tensors) {
  typename Values::Columns columns;
  std::int64_t prepared = -1;  // first channel that the columns are for; neighboring strips share them
#pragma omp for schedule(static)
  for (std::int64_t i = 0; i < strips.count(); ++i) {
    const Strip strip = strips[i];
    if (strip.first_channel != prepared) {
      values.spread(strip, columns);
      prepared = strip.first_channel;
    }
    for_each_panel(strip, [&](const Panel& panel) { apply_columns(panel, columns, tensors); });
  }
}
// One group of strips, on the calling thread; from last to first, because what was read last is still in the cache.
template <typename Values, typename Tensors>
void apply_channels(const Strips& strips, std::int64_t group, const Values& values, const Tensors& tensors) {
  const std::int64_t begin = group * strips.per_group();
  typename Values::Columns columns;
  values.spread(strips[begin], columns);
  for (std::int64_t i = begin + strips.per_group(); i-- > begin;)
    for_each_panel(strips[i], [&](const Panel& panel) { apply_columns(panel, columns, tensors); });
}

}  // namespace trireme::onednn
