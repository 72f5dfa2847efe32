// Sums and moments per channel of an activation, for batch norm, bias and reductions. Called by one thread each or
// inside an OpenMP region, where the work is shared; the results do not depend on the number of threads. Element is
// float or BFloat16.
#pragma once

#include "trireme/backend/onednn/channel_loops.hpp"

namespace trireme::onednn {

// Doubles that the functions below need for their partial results: two per strip and lane.
std::int64_t partial_count(const Strips& strips);

// Mean and sum of squared deviations of each lane of a strip, at partials[2·(index·group_width + lane)].
// Each panel is centred around its own mean while it is in the cache, and merged in double (Chan, Golub and LeVeque):
// one pass over memory, and no cancellation however large the mean is.
template <typename Element>
void strip_moments(const Strips& strips, std::int64_t index, const Element* x, double* partials);

struct Moments {
  double mean = 0, variance = 0;
};
// Of one channel, from all strips of its group.
Moments merged_moments(const Strips& strips, std::int64_t channel, const double* partials);

// Sums of d and d·(x − mean) of each lane of a strip (see GradientOperands), at the same places.
template <typename Element>
void strip_gradient_sums(const Strips& strips, std::int64_t index, const float* mean,
                         const GradientOperands<Element>& operands, double* partials);
// Sum of each lane of a strip, at the first of the two places.
template <typename Element>
void strip_sums(const Strips& strips, std::int64_t index, const Element* x, double* partials);

// The partials of one channel added up, over all strips of its group.
struct Sums {
  double first = 0, second = 0;
};
Sums added_sums(const Strips& strips, std::int64_t channel, const double* partials);

}  // namespace trireme::onednn
