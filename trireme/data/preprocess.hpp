// From an encoded sample to the numbers that a network takes: decoding, cropping, scaling, flipping, normalising.
// Used by the pipeline; deterministic: randomness comes from the key that is given.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "trireme/data/dataset.hpp"

namespace trireme::data {

enum class Crop : std::uint8_t {
  none,    // the whole image, scaled to the size; nothing to do where it has that size
  random,  // a sampled part: cover .1 of a box, aspect .75 to 1.33, area .05 to 1, as tf_cnn_benchmarks
  padded,  // a random part after four pixels of padding, as for CIFAR-10
  centre,  // both sides scaled to at least 1.145 x size, and the middle of that: for evaluation
};

struct Preprocessing {
  int size = 224;  // height and width of the result
  int channels = 3;
  Crop crop = Crop::random;
  bool flip = true;             // left to right, every other sample at random
  bool distort_colour = false;  // brightness, saturation, hue and contrast at random
  bool channels_last = false;
  float scale = 1 / 127.5f, offset = -1;  // of each value, from 0 to 255
};

// The memory that a thread needs for it, used again from sample to sample.
class Preprocessor {
 public:
  explicit Preprocessor(const Preprocessing& preprocessing);
  ~Preprocessor();

  // Writes channels x size x size values. Error(failed) where the sample is broken.
  void run(const Sample& sample, std::uint64_t random_key, std::span<float> out);

 private:
  struct Scratch;
  Preprocessing preprocessing_;
  std::unique_ptr<Scratch> scratch_;
};

}  // namespace trireme::data
