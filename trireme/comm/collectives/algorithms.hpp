// The all-reduce algorithms, one per source file in this folder. AllReducer creates them and chooses among them.
#pragma once

#include <memory>
#include <span>

#include "trireme/comm/all_reducer.hpp"

namespace trireme::comm {

class AllReduceAlgorithm {
 public:
  virtual ~AllReduceAlgorithm() = default;
  // Collective and in place. Does not allocate once values of this size have been reduced.
  virtual void reduce(std::span<float> values, Reduction reduction) = 0;
  // Only this rank's slice_of() the values gets the same bits; the rest is undefined. Algorithms that do not give ranks
  // these slices reduce everything.
  virtual void reduce_scatter(std::span<float> values, Reduction reduction) { reduce(values, reduction); }
  // Collective: every rank has its slice_of() the values and gets the others'. False on all ranks: not with this one.
  virtual bool all_gather(std::span<float>) { return false; }
};

std::unique_ptr<AllReduceAlgorithm> make_ring(Communicator& communicator, const AllReduceOptions& options);
std::unique_ptr<AllReduceAlgorithm> make_halving_doubling(Communicator& communicator, const AllReduceOptions& options);
std::unique_ptr<AllReduceAlgorithm> make_tree(Communicator& communicator, const AllReduceOptions& options);
// Collective. nullptr on all ranks if memory cannot be shared. The arena may be nullptr.
std::unique_ptr<AllReduceAlgorithm> make_hierarchical(Communicator& communicator, const AllReduceOptions& options,
                                                      const SharedMemory* arena);

}  // namespace trireme::comm
