// The framing of TFRecord files: each record is its length, the length's CRC, the data, and the data's CRC. Independent
// of the content. Used by the TFRecord reader and writer and by TensorBoard event files.
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
  std::optional<std::string> problem;  // why the scan ended early, with file and place
};

bool begins_with_record(const InputFile& file);  // with a length and its CRC

RecordIndex index_records(const InputFile& file);  // skips the data

// The data of one record in `buffer`, CRC checked. Error(failed) names file and place if it is broken.
std::span<const std::byte> read_record(const InputFile& file, const RecordPlace& place, std::vector<std::byte>& buffer);

void frame_record(std::span<const std::byte> data, std::vector<std::byte>& frame);  // reuses the memory

}  // namespace trireme::data
