#include "trireme/comm/grpc/frame.hpp"

#include <bit>
#include <cstring>

#include "trireme/comm/communicator.hpp"

namespace trireme::comm::rpc {
namespace {

static_assert(std::endian::native == std::endian::little, "frames are written as they lie in memory");

constexpr std::uint32_t kMagic = 0x31465254;  // "TRF1"
constexpr std::int32_t kContexts = 1 << 20;
constexpr std::uint64_t kLargestMessage = std::uint64_t{1} << 46;

struct Layout {
  std::uint32_t magic;
  std::uint32_t kind;
  std::int32_t context;
  std::int32_t tag;
  std::uint64_t sequence;
  std::uint64_t total_bytes;
  std::uint64_t offset;
};
static_assert(sizeof(Layout) == FrameHeader::kBytes);

bool is_possible(const FrameHeader& header, std::size_t part_bytes) {
  if (header.kind == FrameKind::goodbye) return part_bytes == 0;
  if (header.context < 0 || header.context >= kContexts) return false;
  if (header.tag < 0 || header.tag >= Communicator::kTags + Communicator::kCollectiveTags) return false;
  if (header.total_bytes > kLargestMessage || header.offset > header.total_bytes) return false;
  if (part_bytes > header.total_bytes - header.offset) return false;
  return part_bytes > 0 || header.total_bytes == 0;
}

}  // namespace

FrameBytes encode(const FrameHeader& header) {
  const Layout layout{kMagic,          static_cast<std::uint32_t>(header.kind),
                      header.context,  header.tag,
                      header.sequence, header.total_bytes,
                      header.offset};
  return std::bit_cast<FrameBytes>(layout);
}

std::optional<FrameHeader> decode(const FrameBytes& bytes, std::size_t part_bytes) {
  const auto layout = std::bit_cast<Layout>(bytes);
  const auto kind = static_cast<FrameKind>(layout.kind);
  if (layout.magic != kMagic || (kind != FrameKind::part && kind != FrameKind::goodbye)) return std::nullopt;
  const FrameHeader header{.kind = kind,
                           .context = layout.context,
                           .tag = layout.tag,
                           .sequence = layout.sequence,
                           .total_bytes = layout.total_bytes,
                           .offset = layout.offset};
  return is_possible(header, part_bytes) ? std::optional(header) : std::nullopt;
}

}  // namespace trireme::comm::rpc
