#include "trireme/comm/collectives/piece_port.hpp"

#include <algorithm>
#include <array>

#include "trireme/comm/arithmetic.hpp"
#include "trireme/comm/collectives.hpp"

namespace trireme::comm {

PiecePort::PiecePort(Communicator& communicator, int tag, const AllReduceOptions& options)
    : communicator_(communicator), tag_(tag), options_(options), receives_(kAhead) {}

void PiecePort::begin(std::span<float> values, Reduction reduction) {
  values_ = values.data();
  reduction_ = reduction;
  posted_ = finished_ = 0;
  sends_.clear();
  started_ = sent_ = 0;
  const auto count = std::ssize(values);
  const auto bytes = static_cast<std::int64_t>(values.size_bytes());
  // Parts of the values are never cut into larger pieces than the whole.
  const std::int64_t floats = std::min(count, piece_floats(count));
  const std::int64_t buffer_bytes = (floats * static_cast<std::int64_t>(sizeof(float)) + 63) / 64 * 64;
  if (buffers_.bytes() < kAhead * buffer_bytes) buffers_ = AlignedMemory(kAhead * buffer_bytes);
  if (options_.wire != Wire::fp32 && wire_.bytes() < bytes / 2) wire_ = AlignedMemory(bytes / 2);
}

std::int64_t PiecePort::piece_floats(std::int64_t count) const {
  const std::int64_t least = options_.piece_bytes / static_cast<std::int64_t>(sizeof(float));
  return std::clamp((count + kPieces - 1) / kPieces, least, least * kLargestPiece);
}

int PiecePort::pieces_of(std::size_t count) const {
  const std::int64_t piece = piece_floats(static_cast<std::int64_t>(count));
  return static_cast<int>((static_cast<std::int64_t>(count) + piece - 1) / piece);
}

void PiecePort::send(std::span<const float> piece, int to) {
  sends_.push_back({piece, to, {}});
  start_sends();
}

bool PiecePort::sent(std::size_t index) {
  start_sends();
  return index < sent_;
}

void PiecePort::wait_sent(std::size_t index) {
  while (!sent(index)) communicator_.wait(sends_[sent_].transfer);
}

void PiecePort::wait_all_sent() {
  if (!sends_.empty()) wait_sent(sends_.size() - 1);
}

void PiecePort::start_sends() {
  while (sent_ < started_ && communicator_.done(sends_[sent_].transfer)) ++sent_;
  for (; started_ < sends_.size() && started_ < sent_ + kWindow; ++started_) {
    auto& [piece, to, transfer] = sends_[started_];
    if (piece.empty()) continue;
    std::span<const std::byte> data = std::as_bytes(piece);
    if (options_.wire != Wire::fp32) {
      encode(piece, wire_of(piece), options_.wire);
      data = std::as_bytes(std::span(wire_of(piece), piece.size()));
    }
    transfer = communicator_.start_send(data, to, tag_);
  }
}

void PiecePort::post_receive(std::span<float> piece, int from, Arrival arrival) {
  Receive& receive = receives_[posted_ % kAhead];
  receive = {{}, piece, arrival, options_.wire == Wire::fp32 && arrival == Arrival::store};
  if (!piece.empty()) {
    float* into = receive.direct ? piece.data() : buffer(posted_);
    const std::size_t bytes = piece.size() * (options_.wire == Wire::fp32 ? sizeof(float) : sizeof(std::uint16_t));
    receive.transfer = communicator_.start_receive({reinterpret_cast<std::byte*>(into), bytes}, from, tag_);
  }
  ++posted_;
}

void PiecePort::finish_receive() {
  const Receive& receive = receives_[finished_ % kAhead];
  float* arrived = buffer(finished_);
  communicator_.wait(receive.transfer, [this] { start_sends(); });
  ++finished_;
  if (receive.direct || receive.piece.empty()) return;
  if (options_.wire == Wire::fp32) {
    combine(receive.piece.data(), receive.piece.data(), arrived, receive.piece.size(), reduction_);
  } else {
    take_in(receive, reinterpret_cast<const std::uint16_t*>(arrived));
  }
}

void PiecePort::take_in(const Receive& receive, const std::uint16_t* wire) const {
  if (receive.arrival == Arrival::store) {
    decode(wire, receive.piece, options_.wire);
    return;
  }
  // Block by block, so that the floats stay in the L1 cache.
  std::array<float, 2048> block;
  for (std::size_t at = 0; at < receive.piece.size(); at += block.size()) {
    const std::span<float> values = receive.piece.subspan(at, std::min(block.size(), receive.piece.size() - at));
    decode(wire + at, std::span(block).first(values.size()), options_.wire);
    combine(values.data(), values.data(), block.data(), values.size(), reduction_);
  }
}

void PiecePort::finish_reduction(std::span<float> piece) {
  comm::finish_reduction(piece, reduction_, communicator_.size());
  if (options_.wire == Wire::fp32) return;
  encode(piece, wire_of(piece), options_.wire);
  decode(wire_of(piece), piece, options_.wire);
}

void PiecePort::exchange(std::span<const float> out, int to, std::span<float> in, int from, Arrival arrival) {
  const int outgoing = pieces_of(out.size());
  const int incoming = pieces_of(in.size());
  int posted = 0;
  const auto post_ahead = [&] {
    for (; posted < incoming && can_receive(); ++posted) post_receive(slice_of(in, incoming, posted), from, arrival);
  };
  post_ahead();
  for (int i = 0; i < outgoing; ++i) send(slice_of(out, outgoing, i), to);
  for (int i = 0; i < incoming; ++i) {
    finish_receive();
    post_ahead();
  }
  wait_all_sent();
}

std::uint16_t* PiecePort::wire_of(std::span<const float> piece) const {
  return static_cast<std::uint16_t*>(wire_.at(0)) + (piece.data() - values_);
}

float* PiecePort::buffer(std::uint64_t receive) const {
  return static_cast<float*>(buffers_.at(static_cast<std::int64_t>(receive % kAhead) * (buffers_.bytes() / kAhead)));
}

}  // namespace trireme::comm
