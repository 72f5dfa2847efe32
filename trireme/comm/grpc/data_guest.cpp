#include "trireme/comm/grpc/data_guest.hpp"

#include <fmt/format.h>

#include <cstring>

namespace trireme::comm::rpc {
namespace {

// Calls `use(bytes)` for the pieces of memory that hold a message from `begin` on.
template <typename Use>
void for_each_piece(const std::vector<grpc::Slice>& slices, std::size_t begin, const Use& use) {
  for (const grpc::Slice& slice : slices) {
    const auto* const bytes = reinterpret_cast<const std::byte*>(slice.begin());
    if (begin < slice.size()) use(std::span(bytes + begin, slice.size() - begin));
    begin -= std::min(begin, slice.size());
  }
}

// What follows the header of a frame, in gRPC's memory.
class SlicePayload : public Payload {
 public:
  SlicePayload(std::vector<grpc::Slice> slices, std::size_t size) : slices_(std::move(slices)), size_(size) {}

  std::size_t size() const override { return size_; }
  void copy_to(std::byte* target) const override {
    for_each_piece(slices_, FrameHeader::kBytes, [&](std::span<const std::byte> piece) {
      std::memcpy(target, piece.data(), piece.size());
      target += piece.size();
    });
  }

 private:
  std::vector<grpc::Slice> slices_;
  std::size_t size_;
};

FrameBytes header_of(const std::vector<grpc::Slice>& slices) {
  FrameBytes header{};
  std::size_t filled = 0;
  for_each_piece(slices, 0, [&](std::span<const std::byte> piece) {
    const std::size_t taken = std::min(piece.size(), header.size() - filled);
    std::copy_n(piece.begin(), taken, header.begin() + static_cast<std::ptrdiff_t>(filled));
    filled += taken;
  });
  return header;
}

}  // namespace

std::string PartSink::take(int from, const grpc::ByteBuffer& frame, FrameHeader& header) {
  std::vector<grpc::Slice> slices;
  if (!frame.Dump(&slices).ok() || frame.Length() < FrameHeader::kBytes) return "a frame without a header";
  const std::size_t bytes = frame.Length() - FrameHeader::kBytes;
  const auto decoded = decode(header_of(slices), bytes);
  if (!decoded) return "a malformed frame";
  header = *decoded;
  if (header.kind == FrameKind::goodbye) return "";
  auto payload = std::make_unique<SlicePayload>(std::move(slices), bytes);
  const bool fits = inboxes_.get(header.context)->deliver(from, header, std::move(payload));
  return fits ? "" : "a frame that contradicts earlier ones";
}

std::optional<grpc::Status> DataGuest::take(const grpc::ByteBuffer& message) {
  FrameHeader header;
  std::string wrong = sink_.take(from_, message, header);
  if (wrong.empty() && has_said_goodbye_) wrong = "a frame after the goodbye";
  if (!wrong.empty()) {
    wrong = "sent " + wrong;
    gate_.report(fmt::format("{} {}", sink_.roster().name_of(from_), wrong));
    sink_.roster().lose(from_, wrong);
    return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, wrong);
  }
  if (header.kind == FrameKind::goodbye) {
    has_said_goodbye_ = true;
    sink_.count_goodbye(from_, header.sequence);
  }
  return std::nullopt;
}

void DataGuest::end() {
  if (!has_said_goodbye_) sink_.roster().lose(from_, "connection closed");
}

}  // namespace trireme::comm::rpc
