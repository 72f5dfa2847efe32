#include "trireme/data/preprocess.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "trireme/base/error.hpp"
#include "trireme/base/random.hpp"
#include "trireme/data/augmentations.hpp"
#include "trireme/data/colour.hpp"
#include "trireme/data/crop.hpp"
#include "trireme/data/jpeg_decoder.hpp"
#include "trireme/data/resize.hpp"

namespace trireme::data {
namespace {

constexpr int kPadding = 4;

ResizeOptions resize_options(const Preprocessing& preprocessing) {
  if (preprocessing.channels != 1 && preprocessing.channels != 3)
    bad_input("images of {} channels were asked for: they have 1 or 3", preprocessing.channels);
  if (preprocessing.size < 1) bad_input("images of {0} x {0} pixels were asked for", preprocessing.size);
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

// Of different purposes for one sample.
enum class Purpose : std::uint64_t { crop = 1, flip, padding, colour, augmentation };

std::uint64_t key_for(Purpose purpose, std::uint64_t random_key) {
  const RandomBlock random = philox(random_key, static_cast<std::uint64_t>(purpose), 0);
  return (std::uint64_t{random[0]} << 32) | random[1];
}

Window size_of_pixels(const Sample& sample) {
  const bool is_possible = sample.height > 0 && sample.width > 0 && (sample.channels == 1 || sample.channels == 3);
  const auto bytes = static_cast<std::uint64_t>(sample.height) * static_cast<std::uint64_t>(sample.width) *
                     static_cast<std::uint64_t>(sample.channels);
  if (!is_possible || bytes != sample.bytes.size()) {
    fail(ErrorKind::failed, "an image of {} x {} pixels and {} channels has {} bytes", sample.height, sample.width,
         sample.channels, sample.bytes.size());
  }
  return {.height = sample.height, .width = sample.width};
}

}  // namespace

struct Preprocessor::Scratch {
  explicit Scratch(const Preprocessing& preprocessing)
      : resizer(resize_options(preprocessing)), affines(affines_of(preprocessing)) {
    for (const std::string& name : preprocessing.augmentations) augmentations.push_back(find_augmentation(name));
  }

  Pixels part_of_pixels(const Sample& sample, const Window& window, int channels);
  Pixels padded(const Pixels& image, std::uint64_t random_key);

  std::optional<JpegDecoder> decoder;  // made for the first JPEG image
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

// A part of the image's own size from the image with black around it.
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
  const std::int64_t plane = std::int64_t{wanted.size} * wanted.size;
  if (wanted.distort_colour) {
    distort_colour({.values = out,
                    .channels = wanted.channels,
                    .pixel_step = wanted.channels_last ? wanted.channels : 1,
                    .channel_step = wanted.channels_last ? 1 : plane},
                   key_for(Purpose::colour, random_key));
  }
  Draws draws(key_for(Purpose::augmentation, random_key), 0);
  for (const Augment& augment : scratch_->augmentations) {
    augment({out, wanted.channels, wanted.size, wanted.channels_last}, draws);
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::size_t channel =
        wanted.channels_last ? i % static_cast<std::size_t>(wanted.channels) : i / static_cast<std::size_t>(plane);
    const Affine& affine = scratch_->affines[channel];
    out[i] = out[i] * (255 * affine.scale) + affine.offset;
  }
}

}  // namespace trireme::data
