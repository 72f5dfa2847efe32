#include "trireme/data/resize.hpp"

#include <algorithm>
#include <cmath>

#include "trireme/base/simd.hpp"

namespace trireme::data {
namespace {

TRIREME_SIMD void blend_rows(const std::uint8_t* first, const std::uint8_t* second, float share, int count,
                             float* out) {
  for (int i = 0; i < count; ++i) {
    const float from = first[i];
    out[i] = from + (static_cast<float>(second[i]) - from) * share;
  }
}

struct ColumnTaps {
  const std::int32_t *first, *second;
  const float* share;
};

TRIREME_SIMD void blend_columns(const float* row, const ColumnTaps& taps, Affine affine, int count, float* out) {
  const std::int32_t* first = taps.first;
  const std::int32_t* second = taps.second;
  const float* share = taps.share;
  for (int i = 0; i < count; ++i) {
    const float from = row[first[i]];
    out[i] = (from + (row[second[i]] - from) * share[i]) * affine.scale + affine.offset;
  }
}

}  // namespace

Resizer::Resizer(const ResizeOptions& options) : options_(options) {
  const auto size = static_cast<std::size_t>(options.size);
  const auto values = size * static_cast<std::size_t>(options.channels);
  rows_.resize(size);
  columns_.resize(size);
  first_.resize(values);
  second_.resize(values);
  share_.resize(values);
}

// The centres of pixels of the result lie at the centres of equal shares of the part; beyond the centres of its first
// and last pixels it goes on as it ends.
void Resizer::set_taps(double start, double length, int limit, std::vector<Tap>& taps) {
  const int lowest = std::clamp(static_cast<int>(std::floor(start)), 0, limit - 1);
  const int highest = std::clamp(static_cast<int>(std::ceil(start + length)) - 1, lowest, limit - 1);
  const double step = length / static_cast<double>(taps.size());
  for (std::size_t i = 0; i < taps.size(); ++i) {
    const double position = std::clamp(start + (static_cast<double>(i) + 0.5) * step - 0.5, static_cast<double>(lowest),
                                       static_cast<double>(highest));
    const int first = static_cast<int>(position);
    taps[i] = {first, std::min(first + 1, highest), static_cast<float>(position - first)};
  }
}

void Resizer::set_columns(const Pixels& pixels, bool mirror) {
  set_taps(pixels.left, pixels.part_width, pixels.width, columns_);
  if (mirror) std::reverse(columns_.begin(), columns_.end());
  const auto channels = static_cast<std::size_t>(options_.channels);
  for (std::size_t channel = 0; channel < channels; ++channel) {
    const int source = pixels.channels == 1 ? 0 : static_cast<int>(channel);
    for (std::size_t x = 0; x < columns_.size(); ++x) {
      const std::size_t at = options_.channels_last ? x * channels + channel : channel * columns_.size() + x;
      first_[at] = columns_[x].first * pixels.channels + source;
      second_[at] = columns_[x].second * pixels.channels + source;
      share_[at] = columns_[x].share;
    }
  }
}

void Resizer::run(const Pixels& pixels, bool mirror, const Affines& affines, std::span<float> out) {
  set_taps(pixels.top, pixels.part_height, pixels.height, rows_);
  set_columns(pixels, mirror);
  const int row_values = pixels.width * pixels.channels;
  row_.resize(row_values);
  const int size = options_.size;
  // With the channels last a row of the result lies in one piece, else in one for each channel.
  const int pieces = options_.channels_last ? 1 : options_.channels;
  const int piece = size * options_.channels / pieces;
  for (int y = 0; y < size; ++y) {
    const Tap& tap = rows_[y];
    blend_rows(pixels.data + tap.first * pixels.row_bytes, pixels.data + tap.second * pixels.row_bytes, tap.share,
               row_values, row_.data());
    for (int i = 0; i < pieces; ++i) {
      const ColumnTaps taps{&first_[i * piece], &second_[i * piece], &share_[i * piece]};
      const std::size_t at =
          (static_cast<std::size_t>(i) * static_cast<std::size_t>(size) + static_cast<std::size_t>(y)) *
          static_cast<std::size_t>(piece);
      const Affine affine = options_.channels_last ? Affine() : affines[i];
      blend_columns(row_.data(), taps, affine, piece, out.data() + at);
    }
  }
  if (!options_.channels_last) return;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const Affine& affine = affines[i % static_cast<std::size_t>(options_.channels)];
    out[i] = out[i] * affine.scale + affine.offset;
  }
}

}  // namespace trireme::data
