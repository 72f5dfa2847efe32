#include "trireme/data/choose_preprocessing.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include "trireme/base/error.hpp"
#include "trireme/base/hash.hpp"
#include "trireme/data/augmentations.hpp"
#include "trireme/data/whole_image.hpp"

namespace trireme::data {
namespace {

constexpr std::int64_t kMostSamples = 32;  // in a glimpse

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> parts;
  for (std::size_t comma = 0; comma != std::string_view::npos;) {
    comma = text.find(',');
    parts.push_back(text.substr(0, comma));
    if (comma != std::string_view::npos) text.remove_prefix(comma + 1);
  }
  return parts;
}

std::vector<float> parse_values(std::string_view option, std::string_view text) {
  std::vector<float> values;
  for (const std::string_view part : split(text)) {
    float value = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
    const bool is_number = error == std::errc() && end == part.data() + part.size() && std::isfinite(value);
    values.push_back(is_number ? value : std::numeric_limits<float>::quiet_NaN());
  }
  const bool all_numbers = std::ranges::none_of(values, [](float value) { return std::isnan(value); });
  if (!all_numbers || (values.size() != 1 && values.size() != 3)) {
    bad_input("--{} {}: must be one number for all channels, or three separated by commas: red, green, blue", option,
              text);
  }
  if (std::ranges::all_of(values, [&](float value) { return value == values[0]; })) values.resize(1);
  return values;
}

void set_channels(std::string_view option, const std::vector<float>& given, int channels,
                  std::array<float, 3>& values) {
  if (given.empty()) return;
  if (given.size() > 1 && std::cmp_not_equal(given.size(), channels)) {
    bad_input("--{} {}: the network takes {} channel{}", option, to_string(given), channels, channels == 1 ? "" : "s");
  }
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = given[given.size() == 1 ? 0 : i];
}

std::vector<float> shortened(const std::array<float, 3>& values, int channels) {
  const std::span<const float> used(values.data(), channels);
  const bool all_same = std::ranges::all_of(used, [&](float value) { return value == used[0]; });
  return all_same ? std::vector<float>{used[0]} : std::vector<float>(used.begin(), used.end());
}

std::string_view words_for(Crop crop) {
  constexpr std::array kWords{"no crop", "random crop", "random crop after padding", "centre crop"};
  return kWords.at(static_cast<std::size_t>(crop));
}

// A single value plain, several in parentheses.
std::string values_text(const std::vector<float>& values) {
  return values.size() == 1 ? to_string(values) : fmt::format("({})", fmt::join(values, ", "));
}

}  // namespace

Glimpse glimpse(const Dataset& dataset) {
  Glimpse seen;
  WholeImages images(dataset);
  Sample sample;
  const std::int64_t size = dataset.size(), count = std::min(size, kMostSamples);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t index = i * size / count;  // spread out: neighbors often share a class
    try {
      dataset.read(index, sample);
      images.measure(index, sample);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::failed) throw;
      continue;  // reported where it is used
    }
    const bool is_first = seen.height == 0;
    seen.same_size = is_first || (seen.same_size && sample.height == seen.height && sample.width == seen.width);
    seen.height = std::max(seen.height, sample.height);
    seen.width = std::max(seen.width, sample.width);
    seen.channels = std::max(seen.channels, sample.channels);
    seen.hash = mix_hash(hash_bytes(sample.bytes, seen.hash), static_cast<std::uint64_t>(sample.label));
  }
  return seen;
}

void PreprocessingOptions::complete_with(const PreprocessingOptions& others) {
  if (!crop) crop = others.crop;
  if (!eval_crop) eval_crop = others.eval_crop;
  if (!augment) augment = others.augment;
  if (mean.empty()) mean = others.mean;
  if (deviation.empty()) deviation = others.deviation;
}

Preprocessing preprocessing_for(const Glimpse& images, int size, int channels, bool training,
                                const PreprocessingOptions& options) {
  Preprocessing result{.size = size, .channels = channels};
  const bool is_small = size <= kLargestSmallImage && images.height > 0 && images.height <= kLargestSmallImage &&
                        images.width <= kLargestSmallImage;
  const bool is_digits = is_small && images.channels == 1;
  if (training) {
    result.crop = options.crop.value_or(is_digits ? Crop::none : is_small ? Crop::padded : Crop::random);
    const Augmentation augment = options.augment.value_or(Augmentation{.flip = !is_digits});
    result.flip = augment.flip;
    result.distort_colour = augment.colour;
    result.augmentations = augment.others;
  } else {
    result.crop = options.eval_crop.value_or(is_small ? Crop::none : Crop::centre);
    result.flip = false;
  }
  set_channels("mean", options.mean, channels, result.mean);
  set_channels("std", options.deviation, channels, result.deviation);
  return result;
}

PreprocessingOptions chosen_options(const Preprocessing& training, const Preprocessing& evaluation) {
  return {.crop = training.crop,
          .eval_crop = evaluation.crop,
          .augment =
              Augmentation{.flip = training.flip, .colour = training.distort_colour, .others = training.augmentations},
          .mean = shortened(evaluation.mean, evaluation.channels),
          .deviation = shortened(evaluation.deviation, evaluation.channels)};
}

std::string_view to_string(Crop crop) {
  constexpr std::array kNames{"none", "random", "padded", "centre"};
  return kNames.at(static_cast<std::size_t>(crop));
}

std::string to_string(const Augmentation& augment) {
  std::vector<std::string> names;
  if (augment.flip) names.emplace_back("flip");
  if (augment.colour) names.emplace_back("colour");
  names.insert(names.end(), augment.others.begin(), augment.others.end());
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ","));
}

std::string to_string(const std::vector<float>& values) { return fmt::format("{}", fmt::join(values, ",")); }

Crop parse_crop(std::string_view option, std::string_view text, bool training) {
  for (const Crop crop : {Crop::none, Crop::centre, Crop::random, Crop::padded}) {
    const bool is_random = crop == Crop::random || crop == Crop::padded;
    if (text == to_string(crop) && (training || !is_random)) return crop;
  }
  if (training) bad_input("--{} {}: must be one of none, random, padded, centre", option, text);
  bad_input("--{} {}: must be none or centre; random crops are for training", option, text);
}

Augmentation parse_augment(std::string_view text, bool must_be_known) {
  Augmentation augment;
  if (text == "none") return augment;
  for (const std::string_view part : split(text)) {
    if (part == "flip" || part == "colour") {
      (part == "flip" ? augment.flip : augment.colour) = true;
      continue;
    }
    if (must_be_known) find_augmentation(part);
    augment.others.emplace_back(part);
  }
  return augment;
}

std::vector<float> parse_mean(std::string_view text) { return parse_values("mean", text); }

std::vector<float> parse_deviation(std::string_view text) {
  std::vector<float> values = parse_values("std", text);
  if (std::ranges::any_of(values, [](float value) { return value < 1; })) {
    bad_input("--std {}: must be 1 or more: pixels have values from 0 to 255; multiply values meant for 0 to 1 by 255",
              text);
  }
  return values;
}

std::string describe(const Preprocessing& made) {
  std::string others;
  for (const std::string& name : made.augmentations) others += ", " + name;
  return fmt::format("{}{}{}{}, to {}x{}x{}, (pixel - {}) / {}", words_for(made.crop), made.flip ? ", flip" : "",
                     made.distort_colour ? ", distorted colours" : "", others, made.channels, made.size, made.size,
                     values_text(shortened(made.mean, made.channels)),
                     values_text(shortened(made.deviation, made.channels)));
}

}  // namespace trireme::data
