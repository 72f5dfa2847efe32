// All-reduce around a ring. Values are cut into a slice per rank. In N - 1 steps every rank sends a slice to its right
// and adds the one from its left, then owns one complete slice; N - 1 more steps pass complete slices on. Every rank
// sends 2 (N - 1) / N of the bytes, the minimum. Slices travel in pieces, forwarded as soon as they are added.
#include "trireme/comm/collectives.hpp"
#include "trireme/comm/collectives/algorithms.hpp"
#include "trireme/comm/collectives/piece_port.hpp"

namespace trireme::comm {
namespace {

class Ring : public AllReduceAlgorithm {
 public:
  Ring(Communicator& communicator, const AllReduceOptions& options)
      : communicator_(communicator), port_(communicator, kRingTag, options) {}

  void reduce(std::span<float> values, Reduction reduction) override { run(values, reduction, true, true); }
  void reduce_scatter(std::span<float> values, Reduction reduction) override { run(values, reduction, true, false); }
  bool all_gather(std::span<float> values) override {
    run(values, Reduction::sum, false, true);
    return true;
  }

 private:
  // A rank's pieces form one sequence over all steps; the piece received as number i is sent as number i + pieces.
  void run(std::span<float> values, Reduction reduction, bool reduces, bool gathers) {
    const int size = communicator_.size();
    if (size == 1 || values.empty()) return;
    port_.begin(values, reduction);
    const int rank = communicator_.rank();
    const int left = (rank - 1 + size) % size;
    const int right = (rank + 1) % size;
    const int pieces = port_.pieces_of(slice_of(values, size, 0).size());  // of the largest slice
    const auto piece_sent = [&](int i) {
      const int slice = (rank - 1 - i / pieces + 2 * size) % size;
      return slice_of(slice_of(values, size, slice), pieces, i % pieces);
    };
    const auto piece_received = [&](int i) { return piece_sent(i + pieces); };

    const int first_stored = (size - 1) * pieces;   // complete pieces arrive from here on
    const int first_owned = first_stored - pieces;  // sums are complete from here on
    const int first = reduces ? 0 : first_stored;
    const int total = gathers ? 2 * first_stored : first_stored;
    int posted = first;
    int finished = first;
    const auto post_ahead = [&] {
      for (; posted < total && port_.can_receive(); ++posted) {
        const bool stored = posted >= first_stored;
        // A complete piece overwrites values that this rank sends, after that send; waits for it only if no receive is
        // posted.
        if (stored && reduces) {
          const auto overwritten = static_cast<std::size_t>(posted - first_stored);
          if (posted == finished) port_.wait_sent(overwritten);
          if (!port_.sent(overwritten)) return;
        }
        port_.post_receive(piece_received(posted), left,
                           stored ? PiecePort::Arrival::store : PiecePort::Arrival::combine);
      }
    };
    post_ahead();
    for (int i = first; i < first + pieces; ++i) port_.send(piece_sent(i), right);
    while (finished < total) {
      port_.finish_receive();
      const int i = finished++;
      if (i >= first_owned && i < first_stored) port_.finish_reduction(piece_received(i));
      if (i + pieces < total) port_.send(piece_sent(i + pieces), right);
      post_ahead();
    }
    port_.wait_all_sent();
  }

  Communicator& communicator_;
  PiecePort port_;
};

}  // namespace

std::unique_ptr<AllReduceAlgorithm> make_ring(Communicator& communicator, const AllReduceOptions& options) {
  return std::make_unique<Ring>(communicator, options);
}

}  // namespace trireme::comm
