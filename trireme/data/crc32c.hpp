// CRC-32C (Castagnoli), the checksum of TFRecord files and TensorBoard event files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace trireme::data {

std::uint32_t crc32c(std::span<const std::byte> bytes);  // by SSE 4.2 if available, else by tables
std::uint32_t crc32c_by_tables(std::span<const std::byte> bytes);

// As stored by TFRecord: a CRC over data that itself holds CRCs would be weak.
inline std::uint32_t masked_crc32c(std::span<const std::byte> bytes) {
  const std::uint32_t crc = crc32c(bytes);
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8U;
}

}  // namespace trireme::data
