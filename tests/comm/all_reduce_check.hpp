// Compares an all-reduce with a plain sum, and the ranks with each other.
#pragma once

#include <cstddef>
#include <vector>

#include "trireme/comm/all_reducer.hpp"

namespace trireme::comm::testkit {

// Throws Error unless this rank's values after reduce() are right, and the same bits as on all other ranks. Values
// outside the range that was reduced must not change. Where the reducer has an arena, values lie in it.
void check_all_reduce(AllReducer& reducer, std::size_t count, Reduction reduction, Wire wire = Wire::fp32,
                      const SharedMemory* arena = nullptr);

// All reductions for each of the sizes.
void check_all_reduce(Communicator& communicator, const AllReduceOptions& options,
                      const std::vector<std::size_t>& sizes, bool in_arena = false);

// Nothing, fewer than ranks, odd, several pieces of this size, and so many that not all may be in flight at once.
std::vector<std::size_t> awkward_sizes(std::int64_t piece_bytes);

}  // namespace trireme::comm::testkit
