// All-reduce by recursive halving and doubling. With partners at half the number of ranks, a quarter, and so on, each
// rank exchanges half of what it still works on, until it owns one complete part; on the way back it exchanges all that
// is complete. As few bytes as a ring in 2 log2 N steps. Where N is no power of two, the ranks beyond it first give
// their values to a neighbour and get the result from it at the end.
#pragma once

#include "trireme/comm/collectives/algorithm.hpp"
#include "trireme/comm/collectives/piece_port.hpp"

namespace trireme::comm {

class HalvingDoubling : public AllReduceAlgorithm {
 public:
  HalvingDoubling(Communicator& communicator, const PortOptions& options);
  void reduce(std::span<float> values, Reduction reduction) override;

 private:
  void run(std::span<float> values, int position);
  int rank_at(int position) const;

  Communicator& communicator_;
  PiecePort port_;
  int active_;  // ranks that work: the largest power of two that there are
};

}  // namespace trireme::comm
