// Sums and moments per channel of an activation (float or BFloat16), for batch norm, bias and reductions. Each call
// handles one strip or channel on the calling thread; results do not depend on the number of threads.
#pragma once

#include "trireme/backend/onednn/channel_loops.hpp"

namespace trireme::onednn {

// Doubles that the partial results below need: two per strip and lane.
std::int64_t partial_count(const Strips& strips);

// Mean and sum of squared deviations of each lane of a strip, at partials[2·(index·group_width + lane)]. Each panel is
// centered on its own mean, then merged in double (Chan, Golub and LeVeque): one pass, and no cancellation.
template <typename Element>
void strip_moments(const Strips& strips, std::int64_t index, const Element* x, double* partials);

struct Moments {
  double mean = 0, variance = 0;
};
// Of one channel, over all strips of its group.
Moments merged_moments(const Strips& strips, std::int64_t channel, const double* partials);

// Sums of d and d·(x − mean) of each lane of a strip (see GradientOperands), at the same positions.
template <typename Element>
void strip_gradient_sums(const Strips& strips, std::int64_t index, const float* mean,
                         const GradientOperands<Element>& operands, double* partials);
// The sum of each lane of a strip, at the first of the two positions.
template <typename Element>
void strip_sums(const Strips& strips, std::int64_t index, const Element* x, double* partials);

// The partials of one channel, summed over all strips of its group.
struct Sums {
  double first = 0, second = 0;
};
Sums added_sums(const Strips& strips, std::int64_t channel, const double* partials);

}  // namespace trireme::onednn
