#include "trireme/data/record_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "trireme/data/crc32c.hpp"

namespace trireme::data {
namespace {

constexpr std::int64_t kLengthBytes = 8, kCrcBytes = 4;
constexpr std::int64_t kHeadBytes = kLengthBytes + kCrcBytes;

template <typename T>
T load(std::span<const std::byte> bytes) {  // little-endian, like this machine
  T value{};
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

template <typename T>
std::array<std::byte, sizeof(T)> stored(T value) {
  std::array<std::byte, sizeof(T)> bytes;
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

bool crc_fits(std::span<const std::byte> bytes, std::span<const std::byte> crc) {
  return load<std::uint32_t>(crc) == masked_crc32c(bytes);
}

}  // namespace

bool begins_with_record(const InputFile& file) {
  if (file.size() < kHeadBytes) return false;
  std::array<std::byte, kHeadBytes> head;
  file.read(0, head);
  return crc_fits(std::span(head).first(kLengthBytes), std::span(head).last(kCrcBytes));
}

RecordIndex index_records(const InputFile& file) {
  RecordIndex index;
  std::int64_t offset = 0;
  const auto broken = [&](const std::string& what) {
    index.problem = fmt::format("{}, byte {}: {}", file.path(), offset, what);
    return index;
  };
  while (offset < file.size()) {
    const std::int64_t left = file.size() - offset;
    if (left < kHeadBytes + kCrcBytes) {
      return broken(fmt::format("the file ends inside a record, {} bytes after its start", left));
    }
    std::array<std::byte, kHeadBytes> head;
    file.read(offset, head);
    const auto length = std::span(head).first(kLengthBytes);
    if (!crc_fits(length, std::span(head).last(kCrcBytes))) return broken("the CRC of the record's length is wrong");
    const auto bytes = load<std::uint64_t>(length);
    if (bytes > static_cast<std::uint64_t>(left - kHeadBytes - kCrcBytes)) {
      return broken(fmt::format("a record of {} bytes, but the file ends after {}", bytes, left - kHeadBytes));
    }
    index.records.push_back({offset, static_cast<std::int64_t>(bytes)});
    offset += kHeadBytes + static_cast<std::int64_t>(bytes) + kCrcBytes;
  }
  return index;
}

std::span<const std::byte> read_record(const InputFile& file, const RecordPlace& place,
                                       std::vector<std::byte>& buffer) {
  buffer.resize(place.bytes + kCrcBytes);
  file.read(place.offset + kHeadBytes, buffer);
  const auto data = std::span(buffer).first(place.bytes);
  if (!crc_fits(data, std::span(buffer).last(kCrcBytes))) {
    fail(ErrorKind::failed, "{}, byte {}: the CRC of the record's data is wrong", file.path(), place.offset);
  }
  return data;
}

void frame_record(std::span<const std::byte> data, std::vector<std::byte>& frame) {
  frame.resize(static_cast<std::size_t>(kHeadBytes) + data.size() + kCrcBytes);
  std::byte* out = frame.data();
  const auto append = [&](std::span<const std::byte> bytes) { out = std::copy(bytes.begin(), bytes.end(), out); };
  const auto length = stored(static_cast<std::uint64_t>(data.size()));
  append(length);
  append(stored(masked_crc32c(length)));
  append(data);
  append(stored(masked_crc32c(data)));
}

}  // namespace trireme::data
