// An activation as own kernels see it in any layout: batch x blocks x positions x lanes; channel (axis 1) is
// block·lanes + lane. Plain layouts have one lane per block, channels-last ones one block, blocked ones 8 or 16 lanes.
// Strips divide it by shape alone, so sums do not depend on the number of threads.
#pragma once

#include <algorithm>
#include <optional>

#include "trireme/plan/backend.hpp"

namespace trireme::onednn {

struct ChannelView {
  std::int64_t batch = 0, channels = 0, blocks = 0, positions = 0, lanes = 0;

  std::int64_t padded_channels() const { return blocks * lanes; }
  bool padded() const { return padded_channels() != channels; }
  std::int64_t elements() const { return batch * blocks * positions * lanes; }
  std::int64_t per_channel() const { return batch * positions; }
  std::int64_t offset(std::int64_t n, std::int64_t block, std::int64_t position = 0) const {
    return ((n * blocks + block) * positions + position) * lanes;
  }
};

// Nothing for other layouts (axes in another order, other axes blocked) and ranks below 2.
std::optional<ChannelView> channel_view(const Shape& shape, const Layout& layout);

// The layout itself if channel_view can express it, else plain.
Layout viewable(const Shape& shape, const Layout& layout);

// For kernels whose inputs must agree: the first blocked layout, since convolutions want it; else the first input's.
const Layout& common_layout(const std::vector<TensorDesc>& inputs);
// For kernels whose inputs must agree: bf16 if any input has it.
DataType common_type(const std::vector<TensorDesc>& inputs);

// The most lanes of a strip, and the columns that loops take at once.
inline constexpr std::int64_t kPanelWidth = 64;
// Rows that are summed in float before they go into a double.
inline constexpr std::int64_t kPanelRows = 128;

// Rows of neighboring channels: row r, lane l is at offset + r·stride + l and belongs to channel first_channel + l.
struct Strip {
  std::int64_t offset, rows, stride, width, first_channel;
};

class Strips {
 public:
  explicit Strips(const ChannelView& view);
  // Group g has the channels from g·group_width() on; its strips are g·per_group() to (g + 1)·per_group() − 1.
  std::int64_t count() const { return groups_ * per_group_; }
  std::int64_t groups() const { return groups_; }
  std::int64_t per_group() const { return per_group_; }
  std::int64_t group_width() const { return group_width_; }
  std::int64_t rows(std::int64_t index) const { return (*this)[index].rows; }
  // Whether whole groups keep all threads busy and fit the cache, so that a second pass over a group hits the cache.
  bool worth_grouping(int threads) const;
  Strip operator[](std::int64_t index) const;

 private:
  ChannelView view_;
  std::int64_t groups_, group_width_, chunk_rows_, chunks_, per_group_;
};

// A part of a strip for one call of a vector loop: at most kPanelRows x kPanelWidth. Column j has the strip's lane j %
// lanes: if lanes divide the width, several rows of the strip make one row of the panel.
struct Panel {
  std::int64_t offset, rows, stride, width, lanes;
};

template <typename Body>
void for_each_panel(const Strip& strip, Body body) {
  const bool joined = strip.stride == strip.width && kPanelWidth % strip.width == 0;
  const std::int64_t width = joined ? kPanelWidth : strip.width;
  const std::int64_t stride = joined ? kPanelWidth : strip.stride;
  const std::int64_t rows = joined ? strip.rows * strip.width / kPanelWidth : strip.rows;
  for (std::int64_t row = 0; row < rows; row += kPanelRows) {
    body(Panel{strip.offset + row * stride, std::min(kPanelRows, rows - row), stride, width, strip.width});
  }
  const std::int64_t rest = joined ? strip.rows * strip.width % kPanelWidth : 0;
  if (rest > 0) body(Panel{strip.offset + rows * kPanelWidth, 1, kPanelWidth, rest, strip.width});
}

// values[channel] of a strip's channels, repeated over a panel's columns.
void spread_lanes(const Strip& strip, const float* values, float* columns);
// Adds a panel's columns to their lanes.
void fold_columns(const Panel& panel, const float* columns, double* lanes);

}  // namespace trireme::onednn
