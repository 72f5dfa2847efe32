// All-reduce around a ring. The values are cut into one slice per rank; in each of N - 1 steps every rank sends a slice
// to its right and adds the one that comes from its left, after which every rank owns one complete slice; N - 1 more
// steps hand the complete slices around. Every rank sends 2 (N - 1) / N of the bytes, the least there is.
// Slices travel in pieces, and a piece goes on to the next rank as soon as it is added: steps are not waited for.
#pragma once

#include "trireme/comm/collectives/algorithm.hpp"
#include "trireme/comm/collectives/piece_port.hpp"

namespace trireme::comm {

class Ring : public AllReduceAlgorithm {
 public:
  Ring(Communicator& communicator, const PortOptions& options);

  void reduce(std::span<float> values, Reduction reduction) override;
  // The first half only: this rank's slice is complete afterwards.
  void reduce_scatter(std::span<float> values, Reduction reduction);

 private:
  void run(std::span<float> values, Reduction reduction, int steps);

  Communicator& communicator_;
  PiecePort port_;
};

}  // namespace trireme::comm
