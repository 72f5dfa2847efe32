// All-reduce in three stages: the ranks of each node sum through shared memory; one rank of each node goes around a
// ring with the others'; the ranks of its node copy what it brings. On one node the first stage is all there is, and
// values that lie in the shared arena are reduced where they are: each byte is read once and written once, by one of
// the ranks. Values that lie elsewhere go through a staging area, piece by piece.
#pragma once

#include <memory>
#include <vector>

#include "trireme/comm/collectives/algorithm.hpp"
#include "trireme/comm/collectives/node_team.hpp"
#include "trireme/comm/collectives/piece_port.hpp"
#include "trireme/comm/collectives/ring.hpp"

namespace trireme::comm {

class Hierarchical : public AllReduceAlgorithm {
 public:
  // Collective. nullptr, on all ranks alike, where memory cannot be shared. The arena may be nullptr.
  static std::unique_ptr<Hierarchical> make(Communicator& communicator, const PortOptions& options,
                                            const SharedMemory* arena);

  void reduce(std::span<float> values, Reduction reduction) override;

 private:
  Hierarchical(Communicator& communicator, const PortOptions& options, const SharedMemory* arena,
               std::unique_ptr<SharedMemory> staging);

  void reduce_in_arena(std::span<float> values, Reduction reduction);
  void reduce_staged(std::span<float> piece, Reduction reduction);
  float* staged(int local_rank, int area) const;
  float node_factor(Reduction reduction) const;
  void sum_across_nodes(std::span<float> sums, Reduction reduction);

  Communicator& communicator_;
  const SharedMemory* arena_;
  std::unique_ptr<SharedMemory> staging_;
  std::size_t area_floats_;  // of one of the two staging areas
  int area_ = 0;
  NodeTeam team_;
  std::unique_ptr<Communicator> leaders_;  // of the nodes; nullptr on other ranks and where there is one node
  std::unique_ptr<Ring> ring_;
  bool several_nodes_;
  std::vector<float*> sources_;  // by local rank
};

}  // namespace trireme::comm
