// A gRPC message of a data stream: a fixed-size header and part of a tensor. Written by Sender, read by Listener.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace trireme::comm::rpc {

// The last frame of a stream announces that its task leaves in good order.
enum class FrameKind : std::uint32_t { part = 1, end = 2 };

// Sent as it is in memory.
struct FrameHeader {
  static constexpr std::uint32_t kMagic = 0x31465254;  // "TRF1"

  std::uint32_t magic = kMagic;
  FrameKind kind = FrameKind::part;
  std::int32_t context = 0;
  std::int32_t tag = 0;
  std::uint64_t sequence = 0;  // numbers the messages from one task to another with this context and tag
  std::uint64_t total_bytes = 0;
  std::uint64_t offset = 0;  // of this part in the message

  static constexpr std::size_t kBytes = 40;
};
static_assert(sizeof(FrameHeader) == FrameHeader::kBytes && std::endian::native == std::endian::little);

using FrameBytes = std::array<std::byte, FrameHeader::kBytes>;

inline FrameBytes encode(const FrameHeader& header) { return std::bit_cast<FrameBytes>(header); }
// nullopt if no valid sender can have written it; `part_bytes` follow the header.
std::optional<FrameHeader> decode(const FrameBytes& bytes, std::size_t part_bytes);

}  // namespace trireme::comm::rpc
