// The ways to all-reduce. Made by AllReducer, which chooses among them; each is in a source of its own in this folder.
#pragma once

#include <memory>
#include <span>

#include "trireme/comm/all_reducer.hpp"

namespace trireme::comm {

class AllReduceAlgorithm {
 public:
  virtual ~AllReduceAlgorithm() = default;
  // Collective and in place. Allocates nothing once values of this size have been reduced before.
  virtual void reduce(std::span<float> values, Reduction reduction) = 0;
};

std::unique_ptr<AllReduceAlgorithm> make_ring(Communicator& communicator, const AllReduceOptions& options);
std::unique_ptr<AllReduceAlgorithm> make_halving_doubling(Communicator& communicator, const AllReduceOptions& options);
std::unique_ptr<AllReduceAlgorithm> make_tree(Communicator& communicator, const AllReduceOptions& options);
// Collective. nullptr, on all ranks alike, if memory cannot be shared. The arena may be nullptr.
std::unique_ptr<AllReduceAlgorithm> make_hierarchical(Communicator& communicator, const AllReduceOptions& options,
                                                      const SharedMemory* arena);

// The first half of the ring: this rank's slice is complete afterwards.
void ring_reduce_scatter(Communicator& communicator, std::span<float> values, Reduction reduction);

}  // namespace trireme::comm
