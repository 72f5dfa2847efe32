// All-reduce up and down a binomial tree: 2 log2 N messages one after the other, each of all bytes. For small messages,
// where the time of a message is what counts.
#pragma once

#include "trireme/comm/collectives/algorithm.hpp"
#include "trireme/comm/collectives/piece_port.hpp"

namespace trireme::comm {

class Tree : public AllReduceAlgorithm {
 public:
  Tree(Communicator& communicator, const PortOptions& options);
  void reduce(std::span<float> values, Reduction reduction) override;

 private:
  Communicator& communicator_;
  PiecePort port_;
};

}  // namespace trireme::comm
