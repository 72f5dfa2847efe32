// Image augmentations that a program adds by name, for `--augment flip,NAME`. Checkpoints keep the name.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/data/draws.hpp"

namespace trireme::data {

// An image of the network's input size, values 0 to 1.
struct AugmentedImage {
  std::span<float> values;
  int channels = 3, size = 0;
  bool channels_last = false;

  float& at(int channel, int row, int column) const {
    const int place =
        channels_last ? (row * size + column) * channels + channel : (channel * size + row) * size + column;
    return values[place];
  }
};

// Changes an image in place. Called from several threads. The draws depend on the sample and the epoch only.
using Augment = std::function<void(const AugmentedImage& image, Draws& draws)>;

// Call first in main(): the table has no lock. Error(bad_input) if the name is taken or not one word.
void add_augmentation(const std::string& name, Augment augment);
const Augment& find_augmentation(std::string_view name);  // Error(bad_input) lists the known ones
std::vector<std::string> augmentation_names();            // of added ones

}  // namespace trireme::data
