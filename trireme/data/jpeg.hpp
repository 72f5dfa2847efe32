// JPEG images by libjpeg-turbo. The decoder decodes only the part that is wanted, and no larger than it is needed; the
// encoder is for data sets that are written from pixels.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "trireme/data/dataset.hpp"
#include "trireme/data/image.hpp"

namespace trireme::data {

// One per thread: its memory is used again from image to image.
class JpegDecoder {
 public:
  // Error(unavailable) where this build has no libjpeg.
  JpegDecoder();
  ~JpegDecoder();
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;

  // Reads the header and gives the whole image as a window. The bytes must stay until decode(). Error(failed) with
  // libjpeg's words where they are broken.
  Window open(std::span<const std::byte> jpeg);
  int channels() const;  // of the image that was opened: 1, grey, or 3

  // Decodes the window of the image that was opened, to one channel (luminance) or three (RGB), scaled to an eighth, a
  // quarter or a half where both its sides keep at least `size` pixels. Valid until the next open(). Data that are
  // broken below the window are not noticed: they are not looked at.
  Pixels decode(const Window& window, int size, int channels);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Of a sample of pixels with one channel (grey) or three (RGB); quality is 1 to 100, as libjpeg counts it. The memory
// of `jpeg` is used again. Error(unavailable) in a build without libjpeg; Error(bad_input) for other channels or sizes.
void encode_jpeg(const Sample& pixels, int quality, std::vector<std::byte>& jpeg);

}  // namespace trireme::data
