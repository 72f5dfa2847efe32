// All-reduce around a ring. Values are cut into a slice per rank. In N - 1 steps every rank sends a slice to its right
// and adds the one from its left, then owns one complete slice; N - 1 more steps pass complete slices on. Every rank
// sends 2 (N - 1) / N of the bytes, the minimum. Slices travel in pieces, forwarded as soon as they are added.
#include "trireme/comm/collectives.hpp"
#include "trireme/comm/collectives/algorithms.hpp"
#include "trireme/comm/collectives/piece_port.hpp"

namespace trireme::comm {
namespace {

// A rank's pieces form one sequence over all steps; the piece received as number i is sent as number i + pieces.
void run_ring(Communicator& communicator, PiecePort& port, std::span<float> values, Reduction reduction, int steps) {
  const int size = communicator.size();
  if (size == 1 || values.empty()) return;
  port.begin(values, reduction);
  const int rank = communicator.rank();
  const int left = (rank - 1 + size) % size;
  const int right = (rank + 1) % size;
  const int pieces = port.pieces_of(slice_of(values, size, 0).size());  // of the largest slice
  const int total = steps * pieces;
  const auto piece_sent = [&](int i) {
    const int slice = (rank - 1 - i / pieces + 2 * size) % size;
    return slice_of(slice_of(values, size, slice), pieces, i % pieces);
  };
  const auto piece_received = [&](int i) { return piece_sent(i + pieces); };

  const int first_stored = (size - 1) * pieces;   // complete pieces arrive from here on
  const int first_owned = first_stored - pieces;  // sums are complete from here on
  int posted = 0;
  int finished = 0;
  const auto post_ahead = [&] {
    for (; posted < total && port.can_receive(); ++posted) {
      const bool stored = posted >= first_stored;
      // A complete piece overwrites values that this rank sends, after that send; waits for it only if no receive is
      // posted.
      if (stored) {
        const auto overwritten = static_cast<std::size_t>(posted - first_stored);
        if (posted == finished) port.wait_sent(overwritten);
        if (!port.sent(overwritten)) return;
      }
      port.post_receive(piece_received(posted), left, stored ? PiecePort::Arrival::store : PiecePort::Arrival::combine);
    }
  };
  post_ahead();
  for (int i = 0; i < pieces; ++i) port.send(piece_sent(i), right);
  while (finished < total) {
    port.finish_receive();
    const int i = finished++;
    if (i >= first_owned && i < first_stored) port.finish_reduction(piece_received(i));
    if (i + pieces < total) port.send(piece_sent(i + pieces), right);
    post_ahead();
  }
  port.wait_all_sent();
}

class Ring : public AllReduceAlgorithm {
 public:
  Ring(Communicator& communicator, const AllReduceOptions& options)
      : communicator_(communicator), port_(communicator, kRingTag, options) {}

  void reduce(std::span<float> values, Reduction reduction) override {
    run_ring(communicator_, port_, values, reduction, 2 * (communicator_.size() - 1));
  }

 private:
  Communicator& communicator_;
  PiecePort port_;
};

}  // namespace

std::unique_ptr<AllReduceAlgorithm> make_ring(Communicator& communicator, const AllReduceOptions& options) {
  return std::make_unique<Ring>(communicator, options);
}

void ring_reduce_scatter(Communicator& communicator, std::span<float> values, Reduction reduction) {
  PiecePort port(communicator, kRingTag, {});
  run_ring(communicator, port, values, reduction, communicator.size() - 1);
}

}  // namespace trireme::comm
