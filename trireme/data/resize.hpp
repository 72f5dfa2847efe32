// Scales a part of an image to the size that a network takes, by bilinear interpolation, and writes it as the numbers
// that the network wants. Used by the preprocessor, one per thread.
#pragma once

#include <span>
#include <vector>

#include "trireme/data/image.hpp"

namespace trireme::data {

struct ResizeOptions {
  int size = 224;
  int channels = 3;  // of the result; an image with one is repeated in each
  bool channels_last = false;
};

class Resizer {
 public:
  explicit Resizer(const ResizeOptions& options);

  // out[...] = value * scale + offset; mirrored left to right where asked for.
  void run(const Pixels& pixels, bool mirror, float scale, float offset, std::span<float> out);

 private:
  // Where a value along one axis comes from: between two pixels, so much of the second.
  struct Tap {
    int first = 0, second = 0;
    float share = 0;
  };
  static void set_taps(double start, double length, int limit, std::vector<Tap>& taps);
  void set_columns(const Pixels& pixels, bool mirror);

  ResizeOptions options_;
  std::vector<Tap> rows_, columns_;
  // For each value of a row of the result, in its order: which values of a row of the image it lies between.
  std::vector<std::int32_t> first_, second_;
  std::vector<float> share_;
  std::vector<float> row_;  // between two rows of the image
};

}  // namespace trireme::data
