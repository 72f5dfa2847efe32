// JPEG images made by libjpeg, for tests of what reads them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace trireme::testkit {

enum class JpegColours : std::uint8_t { grey, rgb, cmyk };

struct JpegOptions {
  int height = 0, width = 0;
  JpegColours colours = JpegColours::rgb;
  bool progressive = false;
  bool subsampled = true;  // colours at half the resolution, as cameras write them
  int quality = 90;
};

// Interleaved pixels, 1, 3 or 4 bytes each.
std::vector<std::byte> encode_jpeg(const JpegOptions& options, const std::vector<std::uint8_t>& pixels);

// A picture of smooth gradients with some structure, different for each number.
std::vector<std::uint8_t> picture(int height, int width, int channels, int number = 0);

// Of the whole image by plain libjpeg, without interpolation of colours.
std::vector<std::uint8_t> decode_whole(const std::vector<std::byte>& jpeg, int channels);

}  // namespace trireme::testkit
