#include "trireme/comm/collectives/tree.hpp"

#include "trireme/comm/collectives/tags.hpp"

namespace trireme::comm {

Tree::Tree(Communicator& communicator, const PortOptions& options)
    : communicator_(communicator), port_(communicator, kTreeTag, options) {}

// A rank's parent is the rank without its lowest bit; its children are those with one more bit below that.
void Tree::reduce(std::span<float> values, Reduction reduction) {
  const int size = communicator_.size();
  if (size == 1 || values.empty()) return;
  port_.begin(values, reduction);
  const int rank = communicator_.rank();

  int bit = 1;
  for (; bit < size && (rank & bit) == 0; bit *= 2) {
    if (rank + bit < size) port_.receive_all(values, rank + bit, PiecePort::Arrival::combine);
  }
  if (rank == 0) {
    port_.finish_reduction(values);
  } else {
    port_.send_all(values, rank - bit);
    port_.receive_all(values, rank - bit, PiecePort::Arrival::store);
  }
  for (bit /= 2; bit > 0; bit /= 2) {
    if (rank + bit < size) port_.send_all(values, rank + bit);
  }
}

}  // namespace trireme::comm
