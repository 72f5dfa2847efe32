// What travels in a data stream: each gRPC message is one frame, a header of fixed size and a part of a tensor. Written
// by Links, read by Listener.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace trireme::comm::rpc {

enum class FrameKind : std::uint32_t { part = 1, goodbye = 2 };

struct FrameHeader {
  FrameKind kind = FrameKind::part;
  std::int32_t context = 0;
  std::int32_t tag = 0;
  std::uint64_t sequence = 0;  // counts the messages from one task to another with this context and tag
  std::uint64_t total_bytes = 0;
  std::uint64_t offset = 0;  // of this part in the message

  static constexpr std::size_t kBytes = 40;
};

using FrameBytes = std::array<std::byte, FrameHeader::kBytes>;

FrameBytes encode(const FrameHeader& header);
// Nothing where no sender of this kind can have written it; `part_bytes` follow the header.
std::optional<FrameHeader> decode(const FrameBytes& bytes, std::size_t part_bytes);

}  // namespace trireme::comm::rpc
