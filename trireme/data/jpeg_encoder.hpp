// Encodes pixels as JPEG by libjpeg-turbo. Used where data sets are written from pixels.
#pragma once

#include <cstddef>
#include <vector>

#include "trireme/data/dataset.hpp"

namespace trireme::data {

// Of a sample of pixels with one channel (grey) or three (RGB); quality is 1 to 100, as libjpeg counts it. The memory
// of `jpeg` is used again. Error(unavailable) in a build without libjpeg; Error(bad_input) for other channels or sizes.
void encode_jpeg(const Sample& pixels, int quality, std::vector<std::byte>& jpeg);

}  // namespace trireme::data
