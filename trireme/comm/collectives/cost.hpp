// How long an all-reduce will take, by each algorithm: what `automatic` compares.
#pragma once

#include <cstdint>

#include "trireme/comm/all_reducer.hpp"

namespace trireme::comm {

Layout layout_of(const Communicator& communicator);

// Not for `library`, of which nothing is known, and `automatic`.
double predicted_seconds(Algorithm algorithm, const CostModel& cost, const Layout& layout, std::int64_t bytes);

}  // namespace trireme::comm
