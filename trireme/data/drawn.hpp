// Drawn data sets of `trireme data make`, for training without downloads. Samples depend on seed, split and index only.
#pragma once

#include <cstdint>
#include <memory>

#include "trireme/data/formats.hpp"

namespace trireme::data {

struct DrawnOptions {
  Split split = Split::train;
  std::int64_t samples = 0;
  std::int32_t classes = 10;
  int height = 28, width = 28;
  std::uint64_t seed = 1;
};

// The digits 0 to 9 in grayscale strokes: moved, rotated, sheared, bent, thick or thin, with noise. Up to 10 classes. A
// small convolutional network learns them; a linear classifier does poorly.
std::shared_ptr<const Dataset> draw_digits(const DrawnOptions& options);

// Colored shapes on a textured background. Up to 1,000 classes: the last digit of a class is the shape, the digit
// before it the filling, the one before that a second shape beside it.
std::shared_ptr<const Dataset> draw_shapes(const DrawnOptions& options);

inline constexpr std::int32_t kMostDigits = 10, kMostShapes = 1000;

}  // namespace trireme::data
