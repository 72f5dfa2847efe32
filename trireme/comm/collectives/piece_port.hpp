// Floats in pieces to and from other ranks, in the form of the wire: what ring, halving-doubling and tree are written
// with. Several receives are posted ahead, so that a piece is worked on while the next ones arrive. Sends queue up and
// are started a few at a time, also while receives are waited for: a transport has buffers for so many, and no circle
// of ranks may end up waiting for each other.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "trireme/base/aligned_memory.hpp"
#include "trireme/comm/all_reducer.hpp"
#include "trireme/comm/communicator.hpp"

namespace trireme::comm {

class PiecePort {
 public:
  static constexpr int kAhead = 4;  // receives that may be posted
  // Sends that may be under way. Enough for two steps of a ring in kPieces pieces: a rank that has lost its core then
  // keeps nobody waiting for what it could have sent before.
  static constexpr int kWindow = 32;
  static constexpr int kPieces = 16;        // that a range is cut into, if
  static constexpr int kLargestPiece = 32;  // they are then between piece_bytes and so many times that

  PiecePort(Communicator& communicator, int tag, const AllReduceOptions& options);

  // Before the first transfer of these values. Pieces are parts of them.
  void begin(std::span<float> values, Reduction reduction);
  // In how many pieces so many values travel.
  int pieces_of(std::size_t count) const;

  // Puts a send at the end of the queue. The values must not change before it is done. Sends are counted from 0 since
  // begin(), and end in their order.
  void send(std::span<const float> piece, int to);
  bool sent(std::size_t index);
  void wait_sent(std::size_t index);
  void wait_all_sent();

  // What becomes of a piece that arrives: combined with the values that are there, or put in their place.
  enum class Arrival { combine, store };
  bool can_receive() const { return posted_ - finished_ < kAhead; }
  void post_receive(std::span<float> piece, int from, Arrival arrival);
  // Waits for the receive that was posted first among those under way, and does with the piece what was said.
  void finish_receive();

  // To the owner's values when all contributions are in: divides a mean, and rounds as the wire will, so that the owner
  // keeps what the others get.
  void finish_reduction(std::span<float> piece);

  // Sends all pieces of one range and receives all of another, with the two in flight at the same time.
  void exchange(std::span<const float> out, int to, std::span<float> in, int from, Arrival arrival);
  // One direction only.
  void send_all(std::span<const float> out, int to) { exchange(out, to, {}, -1, Arrival::store); }
  void receive_all(std::span<float> in, int from, Arrival arrival) { exchange({}, -1, in, from, arrival); }

 private:
  std::int64_t piece_floats(std::int64_t count) const;

  struct Receive {
    Transfer transfer;
    std::span<float> piece;
    Arrival arrival;
    bool direct;  // into the values themselves
  };
  void start_sends();
  void take_in(const Receive& receive, const std::uint16_t* wire) const;
  std::uint16_t* wire_of(std::span<const float> piece) const;
  float* buffer(std::uint64_t receive) const;

  Communicator& communicator_;
  int tag_;
  AllReduceOptions options_;
  AlignedMemory buffers_;  // kAhead pieces
  AlignedMemory wire_;     // the values in 16 bits, each at its place
  float* values_ = nullptr;
  Reduction reduction_ = Reduction::sum;
  std::vector<Receive> receives_;  // a ring of kAhead
  std::uint64_t posted_ = 0;
  std::uint64_t finished_ = 0;
  struct Send {
    std::span<const float> piece;
    int to;
    Transfer transfer;
  };
  std::vector<Send> sends_;  // since begin()
  std::size_t started_ = 0;
  std::size_t sent_ = 0;
};

}  // namespace trireme::comm
