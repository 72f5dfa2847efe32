// Pixels in memory and parts of them: what the decoder gives and the resizer takes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace trireme::data {

// A part of an image, in its pixels.
struct Window {
  int top = 0, left = 0, height = 0, width = 0;
};

// Pixels that somebody else owns: rows of one byte per channel, and which part of them is meant.
struct Pixels {
  const std::uint8_t* data = nullptr;
  std::ptrdiff_t row_bytes = 0;
  int height = 0, width = 0, channels = 0;
  double top = 0, left = 0, part_height = 0, part_width = 0;
};

// Luminance of RGB pixels.
void rgb_to_grey(const std::uint8_t* rgb, std::int64_t pixels, std::uint8_t* grey);

}  // namespace trireme::data
