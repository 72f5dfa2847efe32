#include "trireme/backend/onednn/channel_view.hpp"

namespace trireme::onednn {
namespace {

// Approximate elements of a strip: enough to be worth a task, few enough to give every thread some.
constexpr std::int64_t kStripElements = 32768;
// Elements of a group that stay in the cache, for several tensors.
constexpr std::int64_t kGroupElements = 1 << 18;

}  // namespace

std::optional<ChannelView> channel_view(const Shape& shape, const Layout& layout) {
  const int rank = shape.rank();
  if (rank < 2) return std::nullopt;
  ChannelView view{.batch = shape[0], .channels = shape[1]};
  view.positions = 1;
  for (int axis = 2; axis < rank; ++axis) view.positions *= shape[axis];
  const Layout plain = Layout::plain(rank);
  const bool one_position = view.positions == 1 && layout.blocks.empty() && layout.order[0] == 0;
  if (one_position || layout == Layout::channels_last(rank)) {
    view.blocks = 1;
    view.lanes = view.channels;
  } else if (layout == plain) {
    view.blocks = view.channels;
    view.lanes = 1;
  } else if (layout.order == plain.order && layout.blocks.size() == 1 && layout.blocks[0].axis == 1) {
    view.lanes = layout.blocks[0].size;
    view.blocks = (view.channels + view.lanes - 1) / view.lanes;
  } else {
    return std::nullopt;
  }
  return view;
}

Layout viewable(const Shape& shape, const Layout& layout) {
  return channel_view(shape, layout) ? layout : Layout::plain(shape.rank());
}

const Layout& common_layout(const std::vector<TensorDesc>& inputs) {
  const auto blocked =
      std::find_if(inputs.begin(), inputs.end(), [](const TensorDesc& input) { return !input.layout.blocks.empty(); });
  return blocked == inputs.end() ? inputs.front().layout : blocked->layout;
}

DataType common_type(const std::vector<TensorDesc>& inputs) {
  const bool bf16 =
      std::any_of(inputs.begin(), inputs.end(), [](const TensorDesc& input) { return input.dtype == DataType::bf16; });
  return bf16 ? DataType::bf16 : inputs.front().dtype;
}

Strips::Strips(const ChannelView& view) : view_(view) {
  // With one block, samples follow each other in memory: one long list of rows.
  if (view_.blocks == 1) {
    view_.positions *= view_.batch;
    view_.batch = 1;
  }
  group_width_ = std::min(view_.lanes, kPanelWidth);
  groups_ = view_.blocks * ((view_.lanes + group_width_ - 1) / group_width_);
  chunk_rows_ = std::max<std::int64_t>(kStripElements / std::max<std::int64_t>(group_width_, 1), 1);
  chunks_ = (view_.positions + chunk_rows_ - 1) / chunk_rows_;
  per_group_ = view_.batch * chunks_;
}

bool Strips::worth_grouping(int threads) const {
  const bool even = groups_ % threads == 0 || groups_ >= 4 * threads;
  return even && view_.blocks > 1 && view_.per_channel() * group_width_ <= kGroupElements;
}

Strip Strips::operator[](std::int64_t index) const {
  const std::int64_t group = index / per_group_;
  const std::int64_t n = index % per_group_ / chunks_;
  const std::int64_t first_row = index % chunks_ * chunk_rows_;
  const std::int64_t groups_per_block = groups_ / view_.blocks;
  const std::int64_t block = group / groups_per_block;
  const std::int64_t lane = group % groups_per_block * group_width_;
  return {.offset = view_.offset(n, block, first_row) + lane,
          .rows = std::min(chunk_rows_, view_.positions - first_row),
          .stride = view_.lanes,
          .width = std::min(group_width_, view_.lanes - lane),
          .first_channel = block * view_.lanes + lane};
}

void spread_lanes(const Strip& strip, const float* values, float* columns) {
  for (std::int64_t j = 0; j < kPanelWidth; j += strip.width) {
    const std::int64_t count = std::min(strip.width, kPanelWidth - j);
    for (std::int64_t lane = 0; lane < count; ++lane) columns[j + lane] = values[strip.first_channel + lane];
  }
}

void fold_columns(const Panel& panel, const float* columns, double* lanes) {
  for (std::int64_t j = 0; j < panel.width; j += panel.lanes) {
    const std::int64_t count = std::min(panel.lanes, panel.width - j);
    for (std::int64_t lane = 0; lane < count; ++lane) lanes[lane] += columns[j + lane];
  }
}

}  // namespace trireme::onednn
