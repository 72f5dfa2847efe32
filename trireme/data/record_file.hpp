// The framing of TFRecord files: each record is its length, the length's CRC, the data, and the data's CRC. What is
// inside a record is no concern of it. Used by the TFRecord reader and writer and by TensorBoard's event files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trireme/data/files.hpp"

namespace trireme::data {

struct RecordPlace {
  std::int64_t offset = 0;  // of the record's frame
  std::int64_t bytes = 0;   // of its data
};

struct RecordIndex {
  std::vector<RecordPlace> records;
  std::optional<std::string> problem;  // why the walk ended before the end of the file, with file and place
};

// Whether the file begins with a record's length and its CRC.
bool begins_with_record(const InputFile& file);

// Walks from length to length; data is not read.
RecordIndex index_records(const InputFile& file);

// The data of one record, its CRC checked: a part of `buffer`, which holds the frame. Error(failed) with file and place
// where it is broken.
std::span<const std::byte> read_record(const InputFile& file, const RecordPlace& place, std::vector<std::byte>& buffer);

// The frame with the data in it, as it goes to a file. The memory of `frame` is used again.
void frame_record(std::span<const std::byte> data, std::vector<std::byte>& frame);

}  // namespace trireme::data
