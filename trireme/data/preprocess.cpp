#include "trireme/data/preprocess.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <vector>

#include "trireme/base/error.hpp"
#include "trireme/base/random.hpp"
#include "trireme/base/simd.hpp"
#include "trireme/data/augmentations.hpp"
#include "trireme/data/image.hpp"
#include "trireme/data/jpeg.hpp"

namespace trireme::data {
namespace {

using Color = std::array<float, 3>;
using Matrix = std::array<Color, 3>;  // rows

constexpr float kBrightness = 32.0f / 255;  // added, at most
constexpr float kLeastFactor = 0.5f, kMostFactor = 1.5f;
constexpr float kHueTurn = 0.2f;  // of the hue circle, at most
constexpr float kTwoPi = 6.2831853f;

// YIQ, luminance and two chroma values: saturation is a length and hue an angle there.
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

std::int64_t pixels_of(const AugmentedImage& image) { return std::int64_t{image.size} * image.size; }
// Distance between neighboring pixels, and between channels of a pixel.
std::int64_t pixel_step(const AugmentedImage& image) { return image.channels_last ? image.channels : 1; }
std::int64_t channel_step(const AugmentedImage& image) { return image.channels_last ? 1 : pixels_of(image); }

Color mean_of(const AugmentedImage& image) {
  const std::int64_t pixels = pixels_of(image), step = pixel_step(image);
  Color mean{};
  for (int channel = 0; channel < image.channels; ++channel) {
    double sum = 0;
    const float* values = image.values.data() + channel * channel_step(image);
    for (std::int64_t i = 0; i < pixels; ++i) sum += static_cast<double>(values[i * step]);
    mean[channel] = static_cast<float>(sum / static_cast<double>(pixels));
  }
  return mean;
}

void apply(const Matrix& matrix, const Color& offset, const AugmentedImage& image) {
  const std::int64_t pixels = pixels_of(image), step = channel_step(image);
  for (std::int64_t i = 0; i < pixels; ++i) {
    float* pixel = image.values.data() + i * pixel_step(image);
    Color colour{};
    for (int c = 0; c < image.channels; ++c) colour[c] = pixel[c * step];
    for (int c = 0; c < image.channels; ++c) {
      const Color& row = matrix[c];
      const float value = row[0] * colour[0] + row[1] * colour[1] + row[2] * colour[2];
      pixel[c * step] = std::clamp(value + offset[c], 0.0f, 1.0f);
    }
  }
}

// Random brightness, saturation, hue and contrast, like tf_cnn_benchmarks' distortions. All in one matrix and offset:
// contrast is the distance from the mean, which the matrix maps to the mean of the result.
void distort_colour(const AugmentedImage& image, std::uint64_t random_key) {
  const RandomBlock random = philox(random_key, 0, 0);
  const float brightness = between(-kBrightness, kBrightness, random[0]);
  const float saturation = between(kLeastFactor, kMostFactor, random[1]);
  const float angle = kTwoPi * between(-kHueTurn, kHueTurn, random[2]);
  const float contrast = between(kLeastFactor, kMostFactor, random[3]);
  const Matrix turn =
      image.channels == 3 ? turn_of_colours(saturation, angle) : Matrix{{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}};
  const Color mean = mean_of(image);
  Matrix matrix{};
  Color offset{};
  for (std::size_t i = 0; i < 3; ++i) {
    offset[i] = brightness;
    for (std::size_t j = 0; j < 3; ++j) {
      matrix[i][j] = contrast * turn[i][j];
      offset[i] += (1 - contrast) * turn[i][j] * mean[j];
    }
  }
  apply(matrix, offset, image);
}

// value * scale + offset, per channel.
struct Affine {
  float scale = 1, offset = 0;
};
using Affines = std::array<Affine, 3>;

TRIREME_SIMD void blend_rows(const std::uint8_t* first, const std::uint8_t* second, float share, int count,
                             float* out) {
  for (int i = 0; i < count; ++i) {
    const float from = first[i];
    out[i] = from + (static_cast<float>(second[i]) - from) * share;
  }
}

struct ColumnTaps {
  const std::int32_t *first, *second;
  const float* share;
};

TRIREME_SIMD void blend_columns(const float* row, const ColumnTaps& taps, Affine affine, int count, float* out) {
  const std::int32_t* first = taps.first;
  const std::int32_t* second = taps.second;
  const float* share = taps.share;
  for (int i = 0; i < count; ++i) {
    const float from = row[first[i]];
    out[i] = (from + (row[second[i]] - from) * share[i]) * affine.scale + affine.offset;
  }
}

// Scales part of an image to the network's input size by bilinear interpolation, and writes the final values. A single
// channel is repeated in all channels of the result.
class Resizer {
 public:
  Resizer(int size, int channels, bool channels_last)
      : size_(size),
        channels_(channels),
        channels_last_(channels_last),
        rows_(size),
        columns_(size),
        first_(size * channels),
        second_(size * channels),
        share_(size * channels) {}

  // Mirrors left to right if asked.
  void run(const Pixels& pixels, bool mirror, const Affines& affines, std::span<float> out) {
    set_taps(pixels.top, pixels.part_height, pixels.height, rows_);
    set_columns(pixels, mirror);
    const int row_values = pixels.width * pixels.channels;
    row_.resize(row_values);
    // Channels last: a result row is contiguous; otherwise there is one piece per channel.
    const int pieces = channels_last_ ? 1 : channels_;
    const int piece = size_ * channels_ / pieces;
    for (int y = 0; y < size_; ++y) {
      const Tap& tap = rows_[y];
      blend_rows(pixels.data + tap.first * pixels.row_bytes, pixels.data + tap.second * pixels.row_bytes, tap.share,
                 row_values, row_.data());
      for (int i = 0; i < pieces; ++i) {
        const ColumnTaps taps{&first_[i * piece], &second_[i * piece], &share_[i * piece]};
        const Affine affine = channels_last_ ? Affine() : affines[i];
        blend_columns(row_.data(), taps, affine, piece, out.data() + (std::int64_t{i} * size_ + y) * piece);
      }
    }
    if (!channels_last_) return;
    for (std::size_t i = 0; i < out.size(); ++i) {
      const Affine& affine = affines[i % channels_];
      out[i] = out[i] * affine.scale + affine.offset;
    }
  }

 private:
  // Source of a value along one axis: between two pixels, with this share of the second.
  struct Tap {
    int first = 0, second = 0;
    float share = 0;
  };

  // Centers of result pixels are at the centers of equal shares of the part; beyond the centers of its first and last
  // pixels, edge values repeat.
  static void set_taps(double start, double length, int limit, std::vector<Tap>& taps) {
    const int lowest = std::clamp(static_cast<int>(std::floor(start)), 0, limit - 1);
    const int highest = std::clamp(static_cast<int>(std::ceil(start + length)) - 1, lowest, limit - 1);
    const double step = length / static_cast<double>(taps.size());
    for (std::size_t i = 0; i < taps.size(); ++i) {
      const double position = std::clamp<double>(start + (static_cast<double>(i) + 0.5) * step - 0.5, lowest, highest);
      const int first = static_cast<int>(position);
      taps[i] = {first, std::min(first + 1, highest), static_cast<float>(position - first)};
    }
  }

  void set_columns(const Pixels& pixels, bool mirror) {
    set_taps(pixels.left, pixels.part_width, pixels.width, columns_);
    if (mirror) std::reverse(columns_.begin(), columns_.end());
    for (int channel = 0; channel < channels_; ++channel) {
      const int source = pixels.channels == 1 ? 0 : channel;
      for (int x = 0; x < size_; ++x) {
        const int at = channels_last_ ? x * channels_ + channel : channel * size_ + x;
        first_[at] = columns_[x].first * pixels.channels + source;
        second_[at] = columns_[x].second * pixels.channels + source;
        share_[at] = columns_[x].share;
      }
    }
  }

  int size_, channels_;
  bool channels_last_;
  std::vector<Tap> rows_, columns_;
  // For each value of a result row, in order: the values of an image row it lies between.
  std::vector<std::int32_t> first_, second_;
  std::vector<float> share_;
  std::vector<float> row_;  // interpolated between two image rows
};

constexpr int kPadding = 4;

Resizer resizer_for(const Preprocessing& preprocessing) {
  if (preprocessing.channels != 1 && preprocessing.channels != 3)
    bad_input("images of {} channels were requested: must be 1 or 3", preprocessing.channels);
  if (preprocessing.size < 1) bad_input("images of {0} x {0} pixels were requested", preprocessing.size);
  return {preprocessing.size, preprocessing.channels, preprocessing.channels_last};
}

Affines affines_of(const Preprocessing& preprocessing) {
  Affines affines;
  for (std::size_t i = 0; i < affines.size(); ++i) {
    affines[i] = {.scale = 1 / preprocessing.deviation[i],
                  .offset = -preprocessing.mean[i] / preprocessing.deviation[i]};
  }
  return affines;
}

// Independent random streams of one sample.
enum class Purpose : std::uint64_t { crop = 1, flip, padding, colour, augmentation };

std::uint64_t key_for(Purpose purpose, std::uint64_t random_key) {
  return to_key(philox(random_key, static_cast<std::uint64_t>(purpose), 0));
}

Window size_of_pixels(const Sample& sample) {
  const bool is_possible = sample.height > 0 && sample.width > 0 && (sample.channels == 1 || sample.channels == 3);
  const auto bytes = std::uint64_t{1} * sample.height * sample.width * sample.channels;
  if (!is_possible || bytes != sample.bytes.size()) {
    fail(ErrorKind::failed, "an image of {} x {} pixels and {} channels has {} bytes", sample.height, sample.width,
         sample.channels, sample.bytes.size());
  }
  return {.height = sample.height, .width = sample.width};
}

}  // namespace

struct Preprocessor::Scratch {
  explicit Scratch(const Preprocessing& preprocessing)
      : resizer(resizer_for(preprocessing)), affines(affines_of(preprocessing)) {
    for (const std::string& name : preprocessing.augmentations) augmentations.push_back(find_augmentation(name));
  }

  Pixels part_of_pixels(const Sample& sample, const Window& window, int channels);
  Pixels padded(const Pixels& image, std::uint64_t random_key);

  std::optional<JpegDecoder> decoder;  // created for the first JPEG image
  Resizer resizer;
  Affines affines;
  std::vector<Augment> augmentations;
  std::vector<std::uint8_t> grey, padding;
};

Pixels Preprocessor::Scratch::part_of_pixels(const Sample& sample, const Window& window, int channels) {
  Pixels pixels;
  pixels.data = reinterpret_cast<const std::uint8_t*>(sample.bytes.data());
  pixels.channels = sample.channels;
  if (sample.channels == 3 && channels == 1) {
    grey.resize(sample.bytes.size() / 3);
    rgb_to_grey(pixels.data, std::ssize(grey), grey.data());
    pixels.data = grey.data();
    pixels.channels = 1;
  }
  pixels.height = sample.height;
  pixels.width = sample.width;
  pixels.row_bytes = static_cast<std::ptrdiff_t>(sample.width) * pixels.channels;
  pixels.top = window.top;
  pixels.left = window.left;
  pixels.part_height = window.height;
  pixels.part_width = window.width;
  return pixels;
}

// A window of the image's size from the image with black padding.
Pixels Preprocessor::Scratch::padded(const Pixels& image, std::uint64_t random_key) {
  const auto row_bytes = static_cast<std::size_t>(image.width * image.channels);
  const auto side_bytes = static_cast<std::size_t>(kPadding * image.channels);
  const std::size_t padded_row_bytes = row_bytes + 2 * side_bytes;
  padding.assign(static_cast<std::size_t>(image.height + 2 * kPadding) * padded_row_bytes, 0);
  for (int row = 0; row < image.height; ++row) {
    std::memcpy(padding.data() + static_cast<std::size_t>(row + kPadding) * padded_row_bytes + side_bytes,
                image.data + row * image.row_bytes, row_bytes);
  }
  Pixels result = image;
  result.data = padding.data();
  result.row_bytes = static_cast<std::ptrdiff_t>(padded_row_bytes);
  result.height += 2 * kPadding;
  result.width += 2 * kPadding;
  const RandomBlock random = philox(random_key, 0, 0);
  result.top = random[0] % (2 * kPadding + 1);
  result.left = random[1] % (2 * kPadding + 1);
  return result;
}

Preprocessor::Preprocessor(const Preprocessing& preprocessing)
    : preprocessing_(preprocessing), scratch_(std::make_unique<Scratch>(preprocessing)) {}
Preprocessor::~Preprocessor() = default;

void Preprocessor::run(const Sample& sample, std::uint64_t random_key, std::span<float> out) {
  const Preprocessing& wanted = preprocessing_;
  const bool is_jpeg = sample.encoding == Encoding::jpeg;
  if (is_jpeg && !scratch_->decoder) scratch_->decoder.emplace();
  const Window image = is_jpeg ? scratch_->decoder->open(sample.bytes) : size_of_pixels(sample);
  Window window = image;
  if (wanted.crop == Crop::random) window = random_window(image, sample.boxes, key_for(Purpose::crop, random_key));
  if (wanted.crop == Crop::centre) window = centre_window(image);
  Pixels pixels = is_jpeg ? scratch_->decoder->decode(window, wanted.size, wanted.channels)
                          : scratch_->part_of_pixels(sample, window, wanted.channels);
  if (wanted.crop == Crop::padded) pixels = scratch_->padded(pixels, key_for(Purpose::padding, random_key));

  const bool mirror = wanted.flip && (key_for(Purpose::flip, random_key) & 1) != 0;
  if (!wanted.distort_colour && scratch_->augmentations.empty()) {
    scratch_->resizer.run(pixels, mirror, scratch_->affines, out);
    return;
  }
  Affines to_shares;
  to_shares.fill({.scale = 1 / 255.0f});
  scratch_->resizer.run(pixels, mirror, to_shares, out);
  const AugmentedImage augmented{out, wanted.channels, wanted.size, wanted.channels_last};
  if (wanted.distort_colour) distort_colour(augmented, key_for(Purpose::colour, random_key));
  Draws draws(key_for(Purpose::augmentation, random_key), 0);
  for (const Augment& augment : scratch_->augmentations) augment(augmented, draws);
  const std::int64_t plane = pixels_of(augmented);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const Affine& affine = scratch_->affines[wanted.channels_last ? i % wanted.channels : i / plane];
    out[i] = out[i] * (255 * affine.scale) + affine.offset;
  }
}

}  // namespace trireme::data
