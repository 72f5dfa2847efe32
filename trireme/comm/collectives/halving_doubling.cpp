// All-reduce by recursive halving and doubling. With partners at distance N/2, N/4, ..., each rank exchanges half of
// its data until it owns one complete part, then exchanges complete parts on the way back. As few bytes as a ring in 2
// log2 N steps. If N is not a power of two, extra ranks give their values to a neighbor and get the result from it.
#include <algorithm>
#include <bit>

#include "trireme/comm/collectives.hpp"
#include "trireme/comm/collectives/algorithms.hpp"
#include "trireme/comm/collectives/piece_port.hpp"

namespace trireme::comm {
namespace {

// `count` slices from `first` on, of the values cut into `active` slices.
std::span<float> slices(std::span<float> values, int active, int first, int count) {
  float* begin = slice_of(values, active, first).data();
  const std::span<float> last = slice_of(values, active, first + count - 1);
  return {begin, last.data() + last.size()};
}

class HalvingDoubling : public AllReduceAlgorithm {
 public:
  HalvingDoubling(Communicator& communicator, const AllReduceOptions& options)
      : communicator_(communicator),
        port_(communicator, kHalvingDoublingTag, options),
        active_(static_cast<int>(std::bit_floor(static_cast<unsigned>(communicator.size())))) {}

  void reduce(std::span<float> values, Reduction reduction) override {
    if (communicator_.size() == 1 || values.empty()) return;
    port_.begin(values, reduction);
    const int rank = communicator_.rank();
    const int extra = communicator_.size() - active_;
    if (rank >= 2 * extra) {
      run(values, rank - extra);
    } else if (rank % 2 == 1) {
      port_.receive_all(values, rank - 1, PiecePort::Arrival::combine);
      run(values, rank / 2);
      port_.send_all(values, rank - 1);
    } else {
      port_.send_all(values, rank + 1);
      port_.receive_all(values, rank + 1, PiecePort::Arrival::store);
    }
  }

  // A part per rank only for powers of two.
  void reduce_scatter(std::span<float> values, Reduction reduction) override {
    if (communicator_.size() > active_) return reduce(values, reduction);
    if (communicator_.size() == 1 || values.empty()) return;
    port_.begin(values, reduction);
    halve(values, communicator_.rank());
  }

 private:
  // Of the first 2 (N - active) ranks the odd ones work, and all ranks after these.
  int rank_at(int position) const {
    const int extra = communicator_.size() - active_;
    return position < extra ? 2 * position + 1 : position + extra;
  }

  void run(std::span<float> values, int position) {
    halve(values, position);
    int first = position;  // of this rank's slices
    for (int distance = 1; distance < active_; distance *= 2) {
      const int partner = rank_at(position ^ distance);
      const int theirs = first ^ distance;
      port_.exchange(slices(values, active_, first, distance), partner, slices(values, active_, theirs, distance),
                     partner, PiecePort::Arrival::store);
      first = std::min(first, theirs);
    }
  }

  void halve(std::span<float> values, int position) {
    int first = 0;  // of this rank's slices; finally the one of its position
    for (int distance = active_ / 2; distance > 0; distance /= 2) {
      const int keep = first + (position & distance);
      const int give = keep ^ distance;
      const int partner = rank_at(position ^ distance);
      port_.exchange(slices(values, active_, give, distance), partner, slices(values, active_, keep, distance), partner,
                     PiecePort::Arrival::combine);
      first = keep;
    }
    port_.finish_reduction(slice_of(values, active_, position));
  }

  Communicator& communicator_;
  PiecePort port_;
  int active_;  // ranks that work: the largest power of two <= N
};

}  // namespace

std::unique_ptr<AllReduceAlgorithm> make_halving_doubling(Communicator& communicator, const AllReduceOptions& options) {
  return std::make_unique<HalvingDoubling>(communicator, options);
}

}  // namespace trireme::comm
