#include "trireme/data/crc32c.hpp"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

#include "trireme/base/random.hpp"

namespace trireme::data {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

TEST(Crc32c, KnownValues) {
  EXPECT_EQ(crc32c({}), 0U);
  EXPECT_EQ(crc32c(bytes_of("123456789")), 0xe3069283U);
  // RFC 3720, B.4
  EXPECT_EQ(crc32c(std::vector<std::byte>(32)), 0x8a9136aaU);
  EXPECT_EQ(crc32c(std::vector<std::byte>(32, std::byte{0xff})), 0x62a8ab43U);
}

TEST(Crc32c, InstructionAndTablesAgreeAtEveryLengthAndAlignment) {
  std::vector<std::byte> bytes(300);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(philox(1, 0, i)[0]);
  for (std::size_t start = 0; start < 8; ++start) {
    for (std::size_t length = 0; length + start <= bytes.size(); ++length) {
      const auto part = std::span(bytes).subspan(start, length);
      ASSERT_EQ(crc32c(part), crc32c_by_tables(part)) << start << ", " << length;
    }
  }
}

}  // namespace
}  // namespace trireme::data
