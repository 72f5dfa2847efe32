// What is done to the images of a data set: chosen by what they are like and by the size that the network takes, as far
// as the user has not said it. Used by everything that trains or evaluates, and kept in checkpoints.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/data/dataset.hpp"
#include "trireme/data/preprocess.hpp"

namespace trireme::data {

// What the images of a data set are like, by a look at a few of them, always the same ones: JPEG files tell their size
// only one by one. By this data sets are told apart, too.
struct Glimpse {
  int height = 0, width = 0;  // of the highest and of the widest; 0: none can be read
  int channels = 0;           // 1: all are grey
  bool same_size = true;
  std::uint64_t hash = 0;  // of their bytes and labels
};

// Broken images are passed over. Error(unavailable) where this build cannot decode them.
Glimpse glimpse(const Dataset& dataset);

// CIFAR-10's images have 32 x 32 pixels: too few to lose any by cropping.
inline constexpr int kLargestSmallImage = 64;

// Changes at random, in training alone.
struct Augmentation {
  bool flip = false;                     // left to right
  bool colour = false;                   // brightness, saturation, hue and contrast
  std::vector<std::string> others = {};  // of augmentations.hpp
  bool operator==(const Augmentation&) const = default;
};

// What was said; the rest is chosen.
struct PreprocessingOptions {
  std::optional<Crop> crop = {};       // in training
  std::optional<Crop> eval_crop = {};  // none or centre
  std::optional<Augmentation> augment = {};
  std::vector<float> mean = {}, deviation = {};  // in values from 0 to 255: one for all channels, or one for each
  bool operator==(const PreprocessingOptions&) const = default;

  // Takes from the others what was not said here.
  void complete_with(const PreprocessingOptions& others);
};

// Small images (up to 64 x 64, for a network that takes no larger ones) are padded and not cropped, digits (small and
// grey) neither cropped nor flipped, others cropped. Without training nothing is random. Error(bad_input) if there are
// more values than channels.
Preprocessing preprocessing_for(const Glimpse& images, int size, int channels, bool training,
                                const PreprocessingOptions& options = {});
// All that was chosen for training and for evaluation.
PreprocessingOptions chosen_options(const Preprocessing& training, const Preprocessing& evaluation);

// As options have them: "padded"; "flip,colour" or "none"; "127.5" or "123.7,116.3,103.5". Parsing is Error(bad_input)
// that names the option, what was given and what is allowed.
std::string_view to_string(Crop crop);
std::string to_string(const Augmentation& augment);
std::string to_string(const std::vector<float>& values);
Crop parse_crop(std::string_view option, std::string_view text, bool training);
// Names that nobody has added are an error, unless they are only to be kept: those of a checkpoint of another program.
Augmentation parse_augment(std::string_view text, bool must_be_known = true);
std::vector<float> parse_mean(std::string_view text);
std::vector<float> parse_deviation(std::string_view text);

// "random crop after padding, flip, to 3x32x32, (pixel - 127.5) / 127.5"
std::string describe(const Preprocessing& preprocessing);

}  // namespace trireme::data
