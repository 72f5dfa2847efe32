// Measures the links of a job in about a second, all at once as an all-reduce uses them, for choices at its start:
// figures of another day may mislead. `trireme net` measures thoroughly. Used by train/choose_parallel.cpp and, if the
// figures in the network file are doubtful, by train/worker_replicas.cpp.
#pragma once

#include "trireme/comm/all_reducer.hpp"

namespace trireme::comm {

// Collective. The slowest link of each kind; without one of a kind, the default.
CostModel measure_links(Communicator& communicator);

}  // namespace trireme::comm
