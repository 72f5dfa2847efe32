#include "trireme/data/image.hpp"

#include <algorithm>
#include <cmath>

#include "trireme/base/random.hpp"

namespace trireme::data {
namespace {

// As in tf_cnn_benchmarks.
constexpr double kLeastAspect = 0.75, kMostAspect = 1.33;
constexpr double kLeastArea = 0.05;
constexpr double kLeastCover = 0.1;
constexpr std::uint64_t kAttempts = 100;
constexpr double kCentreMargin = 1.145;

// An integer from 0 to `most`.
int uniform(std::uint32_t random, int most) {
  return static_cast<int>((std::uint64_t{random} * (static_cast<std::uint64_t>(most) + 1)) >> 32);
}

// Draws the height, and so the width, from those with the given aspect and area that fit the image.
Window attempt(const Window& image, const RandomBlock& random) {
  const double aspect = kLeastAspect + (kMostAspect - kLeastAspect) * static_cast<double>(to_unit(random[0]));
  const double area = static_cast<double>(image.height) * image.width;
  const double least = std::max(1.0, std::sqrt(kLeastArea * area / aspect));
  const double most = std::min({std::sqrt(area / aspect), static_cast<double>(image.height), image.width / aspect});
  const double height = least + (std::max(least, most) - least) * static_cast<double>(to_unit(random[1]));
  Window window;
  window.height = std::clamp(static_cast<int>(std::lround(height)), 1, image.height);
  window.width = std::clamp(static_cast<int>(std::lround(height * aspect)), 1, image.width);
  window.top = uniform(random[2], image.height - window.height);
  window.left = uniform(random[3], image.width - window.width);
  return window;
}

bool covers(const Window& window, const Window& image, const Box& box) {
  const double top = static_cast<double>(box.top) * image.height,
               bottom = static_cast<double>(box.bottom) * image.height;
  const double left = static_cast<double>(box.left) * image.width, right = static_cast<double>(box.right) * image.width;
  const double height = std::min<double>(bottom, window.top + window.height) - std::max<double>(top, window.top);
  const double width = std::min<double>(right, window.left + window.width) - std::max<double>(left, window.left);
  const double area = (bottom - top) * (right - left);
  return height > 0 && width > 0 && height * width >= kLeastCover * area;
}

}  // namespace

Window random_window(const Window& image, std::span<const Box> boxes, std::uint64_t random_key) {
  const Box whole;
  if (boxes.empty()) boxes = {&whole, 1};
  for (std::uint64_t i = 0; i < kAttempts; ++i) {
    const Window window = attempt(image, philox(random_key, 0, i));
    const bool is_good =
        std::any_of(boxes.begin(), boxes.end(), [&](const Box& box) { return covers(window, image, box); });
    const double aspect = static_cast<double>(window.width) / window.height;
    const double area = static_cast<double>(window.height) * window.width;
    const bool has_shape = area >= kLeastArea * image.height * image.width && aspect > kLeastAspect / 1.1 &&
                           aspect < kMostAspect * 1.1;  // rounding to pixels may change it a little
    if (is_good && has_shape) return window;
  }
  return image;
}

Window centre_window(const Window& image) {
  const double side = std::min(image.height, image.width) / kCentreMargin;
  const int pixels = std::max(1, static_cast<int>(std::lround(side)));
  return {.top = (image.height - pixels) / 2, .left = (image.width - pixels) / 2, .height = pixels, .width = pixels};
}

void rgb_to_grey(const std::uint8_t* rgb, std::int64_t pixels, std::uint8_t* grey) {
  for (std::int64_t i = 0; i < pixels; ++i) {
    const unsigned sum = 299u * rgb[3 * i] + 587u * rgb[3 * i + 1] + 114u * rgb[3 * i + 2];
    grey[i] = static_cast<std::uint8_t>((sum + 500) / 1000);
  }
}

}  // namespace trireme::data
