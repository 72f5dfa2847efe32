// Preprocessing of a data set's images: chosen from their properties and the network's input size unless the user
// decides. Used by everything that trains or evaluates, and kept in checkpoints.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/data/dataset.hpp"
#include "trireme/data/preprocess.hpp"

namespace trireme::data {

// Properties of a data set's images, from a fixed sample: JPEG sizes need reading files. Also tells data sets apart.
struct Glimpse {
  int height = 0, width = 0;  // largest of each; 0: none is readable
  int channels = 0;           // 1: all are grayscale
  bool same_size = true;
  std::uint64_t hash = 0;  // of their bytes and labels
};

Glimpse glimpse(const Dataset& dataset);  // skips broken images; Error(unavailable) if this build cannot decode

inline constexpr int kLargestSmallImage = 64;  // CIFAR-10 has 32: too few pixels to crop any

// Random changes, in training only.
struct Augmentation {
  bool flip = false;                     // left to right
  bool colour = false;                   // brightness, saturation, hue and contrast
  std::vector<std::string> others = {};  // from augmentations.hpp
  bool operator==(const Augmentation&) const = default;
};

// The user's choices; the rest is chosen automatically.
struct PreprocessingOptions {
  std::optional<Crop> crop = {};       // in training
  std::optional<Crop> eval_crop = {};  // none or centre
  std::optional<Augmentation> augment = {};
  std::vector<float> mean = {}, deviation = {};  // on values 0 to 255: one for all channels, or one for each
  bool operator==(const PreprocessingOptions&) const = default;

  void complete_with(const PreprocessingOptions& others);  // fills in what is not set here
};

// Small images (up to 64 x 64, if the network takes no larger ones) are padded instead of cropped, digits (small, gray)
// neither cropped nor flipped, others cropped. Random only in training. Error(bad_input) for more values than channels.
Preprocessing preprocessing_for(const Glimpse& images, int size, int channels, bool training,
                                const PreprocessingOptions& options = {});
// Everything chosen for training and for evaluation.
PreprocessingOptions chosen_options(const Preprocessing& training, const Preprocessing& evaluation);

// Option syntax: "padded"; "flip,colour" or "none"; "127.5" or "123.7,116.3,103.5". Parsing errors are Error(bad_input)
// with the option, the value given and what is allowed.
std::string_view to_string(Crop crop);
std::string to_string(const Augmentation& augment);
std::string to_string(const std::vector<float>& values);
Crop parse_crop(std::string_view option, std::string_view text, bool training);
// Unknown names are an error unless must_be_known is false, for the checkpoint of another program.
Augmentation parse_augment(std::string_view text, bool must_be_known = true);
std::vector<float> parse_mean(std::string_view text);
std::vector<float> parse_deviation(std::string_view text);

// "random crop after padding, flip, to 3x32x32, (pixel - 127.5) / 127.5"
std::string describe(const Preprocessing& preprocessing);

}  // namespace trireme::data
