#include "trireme/comm/collectives/ring.hpp"

#include <algorithm>

#include "trireme/comm/collectives.hpp"
#include "trireme/comm/collectives/tags.hpp"

namespace trireme::comm {

Ring::Ring(Communicator& communicator, const PortOptions& options)
    : communicator_(communicator), port_(communicator, kRingTag, options) {}

void Ring::reduce(std::span<float> values, Reduction reduction) {
  run(values, reduction, 2 * (communicator_.size() - 1));
}

void Ring::reduce_scatter(std::span<float> values, Reduction reduction) {
  run(values, reduction, communicator_.size() - 1);
}

// All pieces that a rank sends form one sequence, step by step; its right neighbour receives the same sequence. What
// was received as number i is sent on, a step later, as number i + pieces.
void Ring::run(std::span<float> values, Reduction reduction, int steps) {
  const int size = communicator_.size();
  if (size == 1 || values.empty()) return;
  port_.begin(values, reduction);
  const int rank = communicator_.rank();
  const int left = (rank - 1 + size) % size;
  const int right = (rank + 1) % size;
  const int pieces = port_.pieces_of(slice_of(values, size, 0).size());  // of the largest slice
  const int total = steps * pieces;
  const auto piece_sent = [&](int i) {
    const int slice = (rank - 1 - i / pieces + 2 * size) % size;
    return slice_of(slice_of(values, size, slice), pieces, i % pieces);
  };
  const auto piece_received = [&](int i) { return piece_sent(i + pieces); };

  const int first_stored = (size - 1) * pieces;   // from here on complete pieces arrive
  const int first_owned = first_stored - pieces;  // from here on the sums are complete
  int posted = 0;
  int finished = 0;
  const auto post_ahead = [&] {
    for (; posted < total && port_.can_receive(); ++posted) {
      const bool stored = posted >= first_stored;
      // A complete piece takes the place of values that this rank has sent: only when they are gone. Nobody has to wait
      // for that while other receives are posted.
      if (stored) {
        const auto overwritten = static_cast<std::size_t>(posted - first_stored);
        if (posted == finished) port_.wait_sent(overwritten);
        if (!port_.sent(overwritten)) return;
      }
      port_.post_receive(piece_received(posted), left,
                         stored ? PiecePort::Arrival::store : PiecePort::Arrival::combine);
    }
  };
  post_ahead();
  for (int i = 0; i < pieces; ++i) port_.send(piece_sent(i), right);
  while (finished < total) {
    port_.finish_receive();
    const int i = finished++;
    if (i >= first_owned && i < first_stored) port_.finish_reduction(piece_received(i));
    if (i + pieces < total) port_.send(piece_sent(i + pieces), right);
    post_ahead();
  }
  port_.wait_all_sent();
}

}  // namespace trireme::comm
