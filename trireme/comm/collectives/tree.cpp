// All-reduce up and down a binomial tree: 2 log2 N consecutive messages of all bytes. For latency-bound small messages.
#include "trireme/comm/collectives/algorithms.hpp"
#include "trireme/comm/collectives/piece_port.hpp"

namespace trireme::comm {
namespace {

class Tree : public AllReduceAlgorithm {
 public:
  Tree(Communicator& communicator, const AllReduceOptions& options)
      : communicator_(communicator), port_(communicator, kTreeTag, options) {}

  // A rank's parent lacks its lowest bit; its children have one more bit below that.
  void reduce(std::span<float> values, Reduction reduction) override {
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

 private:
  Communicator& communicator_;
  PiecePort port_;
};

}  // namespace

std::unique_ptr<AllReduceAlgorithm> make_tree(Communicator& communicator, const AllReduceOptions& options) {
  return std::make_unique<Tree>(communicator, options);
}

}  // namespace trireme::comm
