// Pixels in memory and parts of them: what the decoder gives and the preprocessor takes, and which part of an image a
// network is shown.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "trireme/data/dataset.hpp"

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

// A part of the image with an aspect of .75 to 1.33 and .05 to 1 of its area that covers at least a tenth of one of the
// boxes (of the image where there are none); all of it where a hundred attempts find none.
Window random_window(const Window& image, std::span<const Box> boxes, std::uint64_t random_key);

// The middle of the image: the square that remains of it when its shorter side is scaled to 1.145 x the size of the
// result.
Window centre_window(const Window& image);

// Luminance of RGB pixels.
void rgb_to_grey(const std::uint8_t* rgb, std::int64_t pixels, std::uint8_t* grey);

}  // namespace trireme::data
