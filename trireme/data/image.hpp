// Pixels in memory, from the decoder to the preprocessor, and the choice of the window that a network sees.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "trireme/data/dataset.hpp"

namespace trireme::data {

// Part of an image, in pixels.
struct Window {
  int top = 0, left = 0, height = 0, width = 0;
};

// Non-owned pixels: rows of one byte per channel, and the window that is meant.
struct Pixels {
  const std::uint8_t* data = nullptr;
  std::ptrdiff_t row_bytes = 0;
  int height = 0, width = 0, channels = 0;
  double top = 0, left = 0, part_height = 0, part_width = 0;
};

// A window with aspect .75 to 1.33 and .05 to 1 of the area that covers at least a tenth of one of the boxes (of the
// image if there are none); the whole image if a hundred attempts fail.
Window random_window(const Window& image, std::span<const Box> boxes, std::uint64_t random_key);

// The central square that remains when the shorter side is scaled to 1.145 x the result's size.
Window centre_window(const Window& image);

void rgb_to_grey(const std::uint8_t* rgb, std::int64_t pixels, std::uint8_t* grey);  // luminance

}  // namespace trireme::data
