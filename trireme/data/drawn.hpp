// Data sets that are drawn, not photographed: what `trireme data make` writes, so that training can be tried with
// nothing downloaded. A sample depends on the seed, the split and its number alone.
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

// The digits 0 to 9 in strokes, grey: moved, turned, sheared, bent, thick or thin, with noise. Up to 10 classes. A
// small network of convolutions learns them, a linear classifier does so badly.
std::shared_ptr<const Dataset> draw_digits(const DrawnOptions& options);

// Figures in colour on a textured background. Up to 1,000 classes: the last digit of a class is the figure, the one
// before its filling, the one before that a second figure beside it.
std::shared_ptr<const Dataset> draw_shapes(const DrawnOptions& options);

inline constexpr std::int32_t kMostDigits = 10, kMostShapes = 1000;

}  // namespace trireme::data
