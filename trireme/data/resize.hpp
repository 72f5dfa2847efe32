// Scales a part of an image to the size that a network takes, by bilinear interpolation, and writes it as the numbers
// that the network wants. Used by the preprocessor, one per thread.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "trireme/data/image.hpp"

namespace trireme::data {

struct ResizeOptions {
  int size = 224;
  int channels = 3;  // of the result; an image with one is repeated in each
  bool channels_last = false;
};

// What each value of a channel becomes: value * scale + offset.
struct Affine {
  float scale = 1, offset = 0;
};
using Affines = std::array<Affine, 3>;  // by channel

class Resizer {
 public:
  explicit Resizer(const ResizeOptions& options);

  // Mirrored left to right where asked for.
  void run(const Pixels& pixels, bool mirror, const Affines& affines, std::span<float> out);

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
