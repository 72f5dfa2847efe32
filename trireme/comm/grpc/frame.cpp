#include "trireme/comm/grpc/frame.hpp"

#include "trireme/comm/communicator.hpp"

namespace trireme::comm::rpc {
namespace {

constexpr std::int32_t kContexts = 1 << 20;
constexpr std::uint64_t kLargestMessage = std::uint64_t{1} << 46;

bool is_possible(const FrameHeader& header, std::size_t part_bytes) {
  if (header.magic != FrameHeader::kMagic) return false;
  if (header.kind == FrameKind::end) return part_bytes == 0;
  if (header.kind != FrameKind::part) return false;
  if (header.context < 0 || header.context >= kContexts) return false;
  if (header.tag < 0 || header.tag >= Communicator::kTags + Communicator::kCollectiveTags) return false;
  if (header.total_bytes > kLargestMessage || header.offset > header.total_bytes) return false;
  if (part_bytes > header.total_bytes - header.offset) return false;
  return part_bytes > 0 || header.total_bytes == 0;
}

}  // namespace

std::optional<FrameHeader> decode(const FrameBytes& bytes, std::size_t part_bytes) {
  const auto header = std::bit_cast<FrameHeader>(bytes);
  return is_possible(header, part_bytes) ? std::optional(header) : std::nullopt;
}

}  // namespace trireme::comm::rpc
