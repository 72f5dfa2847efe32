#include "trireme/data/image.hpp"

namespace trireme::data {

void rgb_to_grey(const std::uint8_t* rgb, std::int64_t pixels, std::uint8_t* grey) {
  for (std::int64_t i = 0; i < pixels; ++i) {
    const unsigned sum = 299u * rgb[3 * i] + 587u * rgb[3 * i + 1] + 114u * rgb[3 * i + 2];
    grey[i] = static_cast<std::uint8_t>((sum + 500) / 1000);
  }
}

}  // namespace trireme::data
