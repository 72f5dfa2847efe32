// Which part of an image a network is shown. Used by the preprocessor.
#pragma once

#include <cstdint>
#include <span>

#include "trireme/data/dataset.hpp"
#include "trireme/data/image.hpp"

namespace trireme::data {

// A part of the image with an aspect of .75 to 1.33 and .05 to 1 of its area that covers at least a tenth of one of the
// boxes (of the image where there are none); all of it where a hundred attempts find none.
Window random_window(const Window& image, std::span<const Box> boxes, std::uint64_t random_key);

// The middle of the image: the square that remains of it when its shorter side is scaled to 1.145 x the size of the
// result.
Window centre_window(const Window& image);

}  // namespace trireme::data
