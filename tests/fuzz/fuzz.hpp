// A fuzz target: a reader that is given any bytes. Linked with mutate_main.cpp, which changes the target's own seeds at
// random and always in the same way, or with libFuzzer (clang++ -fsanitize=fuzzer), which looks for new paths. A reader
// may refuse with trireme::Error; anything else that it throws, a crash or a sanitizer's report is a failure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "tests/support/temporary_folder.hpp"
#include "trireme/base/error.hpp"
#include "trireme/data/drawn.hpp"
#include "trireme/data/formats.hpp"
#include "trireme/data/jpeg.hpp"
#include "trireme/data/preprocess.hpp"
#include "trireme/data/whole_image.hpp"
#include "trireme/data/writer.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace trireme::fuzz {

using Bytes = std::vector<std::uint8_t>;

// Inputs that are as they should be, made by our writers. Each target has its own.
std::vector<Bytes> seeds();

inline void write_bytes(const std::string& path, std::span<const std::uint8_t> bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

inline Bytes read_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// One file of a drawn data set.
inline Bytes drawn_file(const std::string& format, const std::string& name) {
  const testkit::TemporaryFolder folder;
  const data::DrawnOptions drawn{.samples = 4, .classes = 3, .height = 12, .width = 16};
  data::write_dataset({{data::Split::train, format == "idx" ? data::draw_digits(drawn) : data::draw_shapes(drawn), 1}},
                      {.format = format, .folder = folder / "data", .origin = "", .stop = {}, .on_progress = {}});
  return read_bytes(folder / ("data/" + name));
}

// Reads all samples of a data set, as training does.
inline void read_all(const std::string& path) {
  try {
    const auto dataset = data::open_dataset(path, {});
    data::Sample sample;
    for (std::int64_t i = 0; i < dataset->size(); ++i) {
      try {
        dataset->read(i, sample);
      } catch (const Error&) {  // the others are not affected
      }
    }
  } catch (const Error&) {
  }
}

}  // namespace trireme::fuzz
