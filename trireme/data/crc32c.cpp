#include "trireme/data/crc32c.hpp"

#include <array>
#include <bit>
#include <cstring>

#ifdef __x86_64__
#include <nmmintrin.h>
#endif

namespace trireme::data {
namespace {

static_assert(std::endian::native == std::endian::little, "eight bytes are taken as one number, the first one lowest");

constexpr std::uint32_t kPolynomial = 0x82f63b78;  // reflected

// tables[k][b]: effect of byte b on the CRC when k more bytes follow, to process eight bytes at a time.
using Tables = std::array<std::array<std::uint32_t, 256>, 8>;

constexpr Tables make_tables() {
  Tables tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kPolynomial : 0);
    tables[0][byte] = crc;
  }
  for (std::size_t k = 1; k < tables.size(); ++k) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t before = tables[k - 1][byte];
      tables[k][byte] = (before >> 8) ^ tables[0][before & 0xff];
    }
  }
  return tables;
}

constexpr Tables kTables = make_tables();

std::uint64_t load_eight(const std::byte* bytes) {
  std::uint64_t word = 0;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

#ifdef __x86_64__
__attribute__((target("sse4.2"))) std::uint32_t crc32c_by_instruction(std::span<const std::byte> bytes) {
  std::uint64_t crc = 0xffffffff;
  std::size_t i = 0;
  for (; i + 8 <= bytes.size(); i += 8) crc = _mm_crc32_u64(crc, load_eight(bytes.data() + i));
  auto rest = static_cast<std::uint32_t>(crc);
  for (; i < bytes.size(); ++i) rest = _mm_crc32_u8(rest, std::to_integer<unsigned char>(bytes[i]));
  return ~rest;
}
#endif

}  // namespace

std::uint32_t crc32c_by_tables(std::span<const std::byte> bytes) {
  std::uint32_t crc = 0xffffffff;
  std::size_t i = 0;
  for (; i + 8 <= bytes.size(); i += 8) {
    const std::uint64_t word = load_eight(bytes.data() + i) ^ crc;
    crc = 0;
    for (std::size_t k = 0; k < 8; ++k) crc ^= kTables[7 - k][(word >> (8 * k)) & 0xff];
  }
  for (; i < bytes.size(); ++i) crc = (crc >> 8) ^ kTables[0][(crc ^ std::to_integer<std::uint32_t>(bytes[i])) & 0xff];
  return ~crc;
}

std::uint32_t crc32c(std::span<const std::byte> bytes) {
#ifdef __x86_64__
  if (__builtin_cpu_supports("sse4.2")) return crc32c_by_instruction(bytes);
#endif
  return crc32c_by_tables(bytes);
}

}  // namespace trireme::data
