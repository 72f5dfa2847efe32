// Changes to training images that a program brings along, by name: `--augment flip,NAME` takes one like those that
// Trireme has, and checkpoints keep the name.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/data/draws.hpp"

namespace trireme::data {

// An image of the size that the network takes, with values from 0 to 1.
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

// Changes an image in place. Called by several threads at a time. The draws depend on the sample and the epoch alone.
using Augment = std::function<void(const AugmentedImage& image, Draws& draws)>;

// Call it first in main(): the table has no lock. Error(bad_input) if the name is taken, or is not one word.
void add_augmentation(const std::string& name, Augment augment);
// Error(bad_input) with those that there are.
const Augment& find_augmentation(std::string_view name);
std::vector<std::string> augmentation_names();  // of those that were added

}  // namespace trireme::data
