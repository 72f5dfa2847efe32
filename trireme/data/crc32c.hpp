// CRC-32C (Castagnoli), which guards the records of TFRecord files and of TensorBoard's event files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace trireme::data {

// By the processor's instruction where it has one (SSE 4.2), else by tables.
std::uint32_t crc32c(std::span<const std::byte> bytes);
std::uint32_t crc32c_by_tables(std::span<const std::byte> bytes);

// As TFRecord stores it: a CRC over data that itself holds CRCs would be weak.
inline std::uint32_t masked_crc32c(std::span<const std::byte> bytes) {
  const std::uint32_t crc = crc32c(bytes);
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8U;
}

}  // namespace trireme::data
