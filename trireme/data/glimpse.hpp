// What the images of a data set are like, by a look at a few of them, always the same ones: JPEG files tell their size
// only one by one. By this preprocessing is chosen, and data sets are told apart.
#pragma once

#include <cstdint>

#include "trireme/data/dataset.hpp"

namespace trireme::data {

struct Glimpse {
  int height = 0, width = 0;  // of the highest and of the widest; 0: none can be read
  int channels = 0;           // 1: all are grey
  bool same_size = true;
  std::uint64_t hash = 0;  // of their bytes and labels
};

// Broken images are passed over. Error(unavailable) where this build cannot decode them.
Glimpse glimpse(const Dataset& dataset);

}  // namespace trireme::data
