// From an encoded sample to the numbers that a network takes: decoding, cropping, scaling, flipping, normalising.
// Used by the pipeline; deterministic: randomness comes from the key that is given. What suits which images:
// choose_preprocessing.hpp.
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
  none,    // the whole image, scaled to the size; nothing to do where it has that size
  random,  // a sampled part: cover .1 of a box, aspect .75 to 1.33, area .05 to 1, as tf_cnn_benchmarks
  padded,  // a part as large as the image, at random, after four pixels of padding, as for CIFAR-10
  centre,  // both sides scaled to at least 1.145 x size, and the middle of that: for evaluation
};

struct Preprocessing {
  int size = 224;    // height and width of the result
  int channels = 3;  // 1 or 3: grey images are repeated in all, coloured ones become luminance
  Crop crop = Crop::random;
  bool flip = true;                             // left to right, every other sample at random
  bool distort_colour = false;                  // brightness, saturation, hue and contrast at random
  std::vector<std::string> augmentations = {};  // then those of augmentations.hpp, in this order
  bool channels_last = false;
  // Each value, from 0 to 255, becomes (value - mean) / deviation of its channel.
  std::array<float, 3> mean{127.5f, 127.5f, 127.5f}, deviation{127.5f, 127.5f, 127.5f};
};

// The memory that a thread needs for it, used again from sample to sample.
class Preprocessor {
 public:
  // Error(bad_input) where the channels are neither 1 nor 3, or the size is none.
  explicit Preprocessor(const Preprocessing& preprocessing);
  ~Preprocessor();

  // Writes channels x size x size values. Error(failed) where the sample is broken, Error(unavailable) where this build
  // cannot decode it.
  void run(const Sample& sample, std::uint64_t random_key, std::span<float> out);

 private:
  struct Scratch;
  Preprocessing preprocessing_;
  std::unique_ptr<Scratch> scratch_;
};

}  // namespace trireme::data
