// Changes the colours of an image at random: brightness, saturation, hue and contrast, as tf_cnn_benchmarks'
// distortions. Used by the preprocessor.
#pragma once

#include <cstdint>
#include <span>

namespace trireme::data {

// Values from 0 to 1, which they stay. Each pixel has `channels` values, `channel_step` apart; pixels are `pixel_step`
// apart.
struct ColourValues {
  std::span<float> values;
  int channels = 3;
  std::int64_t pixel_step = 3, channel_step = 1;
};

void distort_colour(const ColourValues& image, std::uint64_t random_key);

}  // namespace trireme::data
