#include "trireme/comm/grpc/incoming_stream.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstring>

#include "trireme/comm/grpc/events.hpp"
#include "trireme/comm/grpc/security.hpp"

namespace trireme::comm::rpc {
namespace {

using grpc::StatusCode;

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

int to_number(const std::string& text) {
  int number = -1;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

// Deletes itself when no operation is under way any more.
class IncomingStream {
 public:
  IncomingStream(grpc::AsyncGenericService& service, grpc::ServerCompletionQueue& queue, Gate& gate, PartSink& sink)
      : service_(service), queue_(queue), gate_(gate), sink_(sink) {
    service_.RequestCall(&context_, &call_, &queue_, &queue_, came_.tag());
  }

 private:
  void on_came(bool is_ok) {
    if (is_ok && !gate_.is_closed()) {
      accept_stream(service_, queue_, gate_, sink_);
      const grpc::Status refusal = check();
      if (refusal.ok()) {
        read();
      } else {
        finish(refusal);
      }
    }
    settle();
  }

  grpc::Status check() {
    if (!gate_.admits(context_, context_.method())) return Gate::refusal();
    if (context_.method() != kDataMethod) return {StatusCode::UNIMPLEMENTED, "there is no such method"};
    const int task = to_number(metadata_of(context_, kTaskKey));
    streams_ = to_number(metadata_of(context_, kStreamsKey));
    if (streams_ < 1 || !sink_.roster().is_admitted(task, metadata_of(context_, kInstanceKey))) {
      gate_.report(fmt::format("refused a data stream from {}: it is of no task of this job", context_.peer()));
      return {StatusCode::PERMISSION_DENIED, "this stream is of no task that has said hello"};
    }
    from_ = task;
    return grpc::Status::OK;
  }

  void read() {
    if (gate_.is_closed()) return;
    ++under_way_;
    call_.Read(&frame_, read_.tag());
  }

  void finish(const grpc::Status& status) {
    if (is_finished_ || gate_.is_closed()) return;
    is_finished_ = true;
    ++under_way_;
    call_.Finish(status, finished_.tag());
  }

  void on_read(bool is_ok) {
    if (!is_ok) {
      on_end();
    } else if (!is_finished_) {
      grpc::ByteBuffer frame;
      frame.Swap(&frame_);
      read();  // more may come while this part is copied
      take(frame);
    }
    settle();
  }

  void take(const grpc::ByteBuffer& frame) {
    bool is_goodbye = false;
    std::string wrong = sink_.take(from_, frame, is_goodbye);
    if (wrong.empty() && has_said_goodbye_) wrong = "a frame after the goodbye";
    if (!wrong.empty()) {
      wrong = "sent " + wrong;
      gate_.report(fmt::format("{} {}", sink_.roster().name_of(from_), wrong));
      sink_.roster().lose(from_, wrong);
      finish({StatusCode::INVALID_ARGUMENT, wrong});
    } else if (is_goodbye) {
      has_said_goodbye_ = true;
      sink_.count_goodbye(from_, streams_);
    }
  }

  void on_end() {
    if (!has_said_goodbye_) sink_.roster().lose(from_, "connection closed");
    finish(grpc::Status::OK);
  }

  void settle() {
    if (--under_way_ == 0) delete this;
  }

  grpc::AsyncGenericService& service_;
  grpc::ServerCompletionQueue& queue_;
  Gate& gate_;
  PartSink& sink_;
  grpc::GenericServerContext context_;
  grpc::GenericServerAsyncReaderWriter call_{&context_};
  grpc::ByteBuffer frame_;
  Event came_{[this](bool is_ok) { on_came(is_ok); }};
  Event read_{[this](bool is_ok) { on_read(is_ok); }};
  Event finished_{[this](bool) { settle(); }};
  int from_ = -1;
  int streams_ = 0;
  int under_way_ = 1;  // operations
  bool is_finished_ = false, has_said_goodbye_ = false;
};

}  // namespace

std::string PartSink::take(int from, const grpc::ByteBuffer& frame, bool& is_goodbye) {
  std::vector<grpc::Slice> slices;
  if (!frame.Dump(&slices).ok() || frame.Length() < FrameHeader::kBytes) return "a frame without a header";
  const std::size_t bytes = frame.Length() - FrameHeader::kBytes;
  const auto header = decode(header_of(slices), bytes);
  if (!header) return "a malformed frame";
  is_goodbye = header->kind == FrameKind::goodbye;
  if (is_goodbye) return "";
  auto payload = std::make_unique<SlicePayload>(std::move(slices), bytes);
  const bool fits = inboxes_.get(header->context)->deliver(from, *header, std::move(payload));
  return fits ? "" : "a frame that contradicts earlier ones";
}

void accept_stream(grpc::AsyncGenericService& service, grpc::ServerCompletionQueue& queue, Gate& gate, PartSink& sink) {
  new IncomingStream(service, queue, gate, sink);
}

}  // namespace trireme::comm::rpc
