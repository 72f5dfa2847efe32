// Small files of every format of data sets, whole and broken, for tests of what reads them.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/base/error.hpp"
#include "trireme/data/drawn.hpp"
#include "trireme/data/formats.hpp"
#include "trireme/data/writer.hpp"

namespace trireme::testkit {

inline void write_text(const std::string& path, std::string_view text) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

inline std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void change_byte(const std::string& path, std::size_t offset) {
  std::string text = read_text(path);
  text.at(offset) = static_cast<char>(text.at(offset) ^ 0x10);
  write_text(path, text);
}

// Expects that an action throws an Error of this kind with a message that holds all of these parts.
template <typename Action>
void expect_error(ErrorKind kind, std::initializer_list<std::string_view> parts, Action&& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(static_cast<int>(error.kind()), static_cast<int>(kind)) << error.what();
    for (const std::string_view part : parts) {
      EXPECT_NE(std::string_view(error.what()).find(part), std::string_view::npos)
          << "message: " << error.what() << "\nlacks: " << part;
    }
    return;
  }
  ADD_FAILURE() << "no error; expected one with: " << *parts.begin();
}

// A folder of drawn data in a format: 23 samples for training, 7 for validation.
inline void write_drawn(const std::string& folder, const std::string& format, int shards = 3) {
  std::vector<data::SplitSource> sources;
  for (const data::Split split : {data::Split::train, data::Split::validation}) {
    const data::DrawnOptions options{.split = split,
                                     .samples = split == data::Split::train ? 23 : 7,
                                     .classes = 5,
                                     .height = format == "idx" ? 28 : 40,
                                     .width = format == "idx" ? 28 : 48};
    sources.push_back({split, format == "idx" ? data::draw_digits(options) : data::draw_shapes(options), shards});
  }
  ASSERT_TRUE(data::write_dataset(
      sources, {.format = format, .folder = folder, .origin = "drawn", .threads = 2, .stop = {}, .on_progress = {}}));
}

// Data that are not part of the project: the folder that TRIREME_TEST_DATA names, or ../shared/data. Empty: there is
// none.
inline std::string shared_data(const std::string& name) {
  const char* given = std::getenv("TRIREME_TEST_DATA");
  const std::filesystem::path folder = std::filesystem::path(given != nullptr ? given : TRIREME_SHARED_DATA) / name;
  return std::filesystem::is_directory(folder) ? folder.string() : "";
}

}  // namespace trireme::testkit
