// A small data set in MNIST's files: images whose brightness depends on their class. Used by tests that train on data.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <string>

namespace trireme::testkit {

inline void write_idx_header(std::ofstream& file, std::initializer_list<std::uint32_t> words) {
  for (const std::uint32_t word : words) {
    for (const int shift : {24, 16, 8, 0}) file.put(static_cast<char>((word >> shift) & 0xff));
  }
}

// A split ("train", or "t10k" for validation) of 28 x 28 pixels, classes 0, 1, ..., classes - 1 in turns.
inline void write_idx(const std::filesystem::path& folder, std::uint32_t count, std::uint32_t classes = 10,
                      const std::string& split = "train") {
  std::ofstream images(folder / (split + "-images-idx3-ubyte"), std::ios::binary);
  std::ofstream labels(folder / (split + "-labels-idx1-ubyte"), std::ios::binary);
  write_idx_header(images, {0x803, count, 28, 28});
  write_idx_header(labels, {0x801, count});
  for (std::uint32_t i = 0; i < count; ++i) {
    labels.put(static_cast<char>(i % classes));
    for (std::uint32_t pixel = 0; pixel < 28 * 28; ++pixel) {
      images.put(static_cast<char>(20 * (i % classes) + (pixel * 7 + i) % 50));
    }
  }
}

}  // namespace trireme::testkit
