// From an encoded sample to a network's input: decode, crop, scale, flip, normalize. Used by the pipeline;
// deterministic: all randomness comes from the given key. choose_preprocessing.hpp picks what suits the images.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "trireme/data/dataset.hpp"

namespace trireme::data {

enum class Crop : std::uint8_t {
  none,    // whole image, scaled to the size if it differs
  random,  // sampled window: cover .1 of a box, aspect .75 to 1.33, area .05 to 1, as in tf_cnn_benchmarks
  padded,  // random window of the image's size after four pixels of padding, as for CIFAR-10
  centre,  // both sides scaled to at least 1.145 x size, then the center: for evaluation
};

struct Preprocessing {
  int size = 224;    // height and width of the result
  int channels = 3;  // 1 or 3: gray is repeated, color becomes luminance
  Crop crop = Crop::random;
  bool flip = true;                             // left to right, with probability 1/2
  bool distort_colour = false;                  // random brightness, saturation, hue and contrast
  std::vector<std::string> augmentations = {};  // then those of augmentations.hpp, in this order
  bool channels_last = false;
  // Each value, 0 to 255, becomes (value - mean) / deviation of its channel.
  std::array<float, 3> mean{127.5f, 127.5f, 127.5f}, deviation{127.5f, 127.5f, 127.5f};
};

// The working memory of one thread, reused between samples.
class Preprocessor {
 public:
  explicit Preprocessor(const Preprocessing& preprocessing);  // Error(bad_input) unless channels are 1 or 3
  ~Preprocessor();

  // Writes channels x size x size values. Error(failed) for a broken sample, Error(unavailable) if it cannot be
  // decoded.
  void run(const Sample& sample, std::uint64_t random_key, std::span<float> out);

 private:
  struct Scratch;
  Preprocessing preprocessing_;
  std::unique_ptr<Scratch> scratch_;
};

}  // namespace trireme::data
