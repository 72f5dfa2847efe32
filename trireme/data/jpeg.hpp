// JPEG with libjpeg-turbo. The decoder decodes only the part and scale needed; the encoder writes data sets from
// pixels.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "trireme/data/dataset.hpp"
#include "trireme/data/image.hpp"

namespace trireme::data {

// One per thread: reuses its memory.
class JpegDecoder {
 public:
  JpegDecoder();  // Error(unavailable) in a build without libjpeg
  ~JpegDecoder();
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;

  // Returns the whole image as a window. The bytes must stay valid until decode(). Error(failed) with libjpeg's
  // message.
  Window open(std::span<const std::byte> jpeg);
  int channels() const;  // of the opened image: 1 (gray) or 3

  // Decodes a window of the opened image to one channel (luminance) or three (RGB), scaled by 1/8, 1/4 or 1/2 if both
  // sides keep at least `size` pixels. Valid until the next open(). Does not notice damage below the window.
  Pixels decode(const Window& window, int size, int channels);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Encodes pixels with one channel (gray) or three (RGB); quality 1 to 100 as in libjpeg. Reuses the memory of `jpeg`.
// Error(unavailable) in a build without libjpeg; Error(bad_input) for other channels or sizes.
void encode_jpeg(const Sample& pixels, int quality, std::vector<std::byte>& jpeg);

}  // namespace trireme::data
