// Sends and receives floats in pieces, in wire format, for ring, halving-doubling and tree. Several receives are posted
// ahead, so that one piece is processed while the next arrive. Sends are queued and started a few at a time, also while
// waiting for receives: transports have limited buffers, and a cycle of ranks must not deadlock.
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
  // Sends under way: two ring steps of kPieces pieces, so that a descheduled rank delays nobody needlessly.
  static constexpr int kWindow = 32;
  static constexpr int kPieces = 16;        // per range, if the resulting piece
  static constexpr int kLargestPiece = 32;  // is between piece_bytes and this many times piece_bytes

  PiecePort(Communicator& communicator, int tag, const AllReduceOptions& options);

  // Call before the first transfer of these values. Pieces are subspans of them.
  void begin(std::span<float> values, Reduction reduction);
  int pieces_of(std::size_t count) const;

  // Queues a send, whose values must not change meanwhile. Sends are numbered since begin() and complete in order.
  void send(std::span<const float> piece, int to);
  bool sent(std::size_t index);
  void wait_sent(std::size_t index);
  void wait_all_sent();

  // What to do with an arriving piece: combine it with the present values, or replace them.
  enum class Arrival { combine, store };
  bool can_receive() const { return posted_ - finished_ < kAhead; }
  void post_receive(std::span<float> piece, int from, Arrival arrival);
  void finish_receive();  // waits for the oldest posted one and processes its piece

  // For the owner when all contributions are in: divides a mean, and rounds to wire precision as others will get it.
  void finish_reduction(std::span<float> piece);

  // Sends all pieces of one range while receiving all of another.
  void exchange(std::span<const float> out, int to, std::span<float> in, int from, Arrival arrival);
  void send_all(std::span<const float> out, int to) { exchange(out, to, {}, -1, Arrival::store); }
  void receive_all(std::span<float> in, int from, Arrival arrival) { exchange({}, -1, in, from, arrival); }

 private:
  std::int64_t piece_floats(std::int64_t count) const;

  struct Receive {
    Transfer transfer;
    std::span<float> piece;
    Arrival arrival;
    bool direct;  // received straight into the values
  };
  void start_sends();
  void take_in(const Receive& receive, const std::uint16_t* wire) const;
  std::uint16_t* wire_of(std::span<const float> piece) const;
  float* buffer(std::uint64_t receive) const;

  Communicator& communicator_;
  int tag_;
  AllReduceOptions options_;
  AlignedMemory buffers_;  // kAhead pieces
  AlignedMemory wire_;     // the values in 16 bits, in the same positions
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
