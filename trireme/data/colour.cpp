#include "trireme/data/colour.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "trireme/base/random.hpp"

namespace trireme::data {
namespace {

using Colour = std::array<float, 3>;
using Matrix = std::array<Colour, 3>;  // rows

constexpr float kBrightness = 32.0f / 255;  // added, at most
constexpr float kLeastFactor = 0.5f, kMostFactor = 1.5f;
constexpr float kHueTurn = 0.2f;  // of the circle of hues, at most
constexpr float kTwoPi = 6.2831853f;

// Luminance and two differences of colour, as television had them: there saturation is a length and hue an angle.
constexpr Matrix kToYiq{{{0.299f, 0.587f, 0.114f}, {0.596f, -0.274f, -0.322f}, {0.211f, -0.523f, 0.312f}}};
constexpr Matrix kFromYiq{{{1, 0.956f, 0.621f}, {1, -0.272f, -0.647f}, {1, -1.106f, 1.703f}}};

Matrix product(const Matrix& a, const Matrix& b) {
  Matrix result{};
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = 0; j < 3; ++j) {
      for (std::size_t k = 0; k < 3; ++k) result[i][j] += a[i][k] * b[k][j];
    }
  }
  return result;
}

float between(float low, float high, std::uint32_t random) { return low + (high - low) * to_unit(random); }

Matrix turn_of_colours(float saturation, float angle) {
  const float c = saturation * std::cos(angle), s = saturation * std::sin(angle);
  return product(kFromYiq, product(Matrix{{{1, 0, 0}, {0, c, -s}, {0, s, c}}}, kToYiq));
}

Colour mean_of(const ColourValues& image, std::int64_t pixels) {
  Colour mean{};
  for (int channel = 0; channel < image.channels; ++channel) {
    double sum = 0;
    const float* values = image.values.data() + channel * image.channel_step;
    for (std::int64_t i = 0; i < pixels; ++i) sum += static_cast<double>(values[i * image.pixel_step]);
    mean[channel] = static_cast<float>(sum / static_cast<double>(pixels));
  }
  return mean;
}

void apply(const Matrix& matrix, const Colour& offset, const ColourValues& image, std::int64_t pixels) {
  for (std::int64_t i = 0; i < pixels; ++i) {
    float* pixel = image.values.data() + i * image.pixel_step;
    Colour colour{};
    for (int c = 0; c < image.channels; ++c) colour[c] = pixel[c * image.channel_step];
    for (int c = 0; c < image.channels; ++c) {
      const Colour& row = matrix[c];
      const float value = row[0] * colour[0] + row[1] * colour[1] + row[2] * colour[2];
      pixel[c * image.channel_step] = std::clamp(value + offset[c], 0.0f, 1.0f);
    }
  }
}

}  // namespace

// All of it is one matrix and one offset: contrast is the distance from the mean, which the matrix maps to the mean of
// what it maps.
void distort_colour(const ColourValues& image, std::uint64_t random_key) {
  const RandomBlock random = philox(random_key, 0, 0);
  const float brightness = between(-kBrightness, kBrightness, random[0]);
  const float saturation = between(kLeastFactor, kMostFactor, random[1]);
  const float angle = kTwoPi * between(-kHueTurn, kHueTurn, random[2]);
  const float contrast = between(kLeastFactor, kMostFactor, random[3]);
  const std::int64_t pixels = std::ssize(image.values) / image.channels;
  const Matrix turn =
      image.channels == 3 ? turn_of_colours(saturation, angle) : Matrix{{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}};
  const Colour mean = mean_of(image, pixels);
  Matrix matrix{};
  Colour offset{};
  for (std::size_t i = 0; i < 3; ++i) {
    offset[i] = brightness;
    for (std::size_t j = 0; j < 3; ++j) {
      matrix[i][j] = contrast * turn[i][j];
      offset[i] += (1 - contrast) * turn[i][j] * mean[j];
    }
  }
  apply(matrix, offset, image, pixels);
}

}  // namespace trireme::data
