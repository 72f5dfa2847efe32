// What exchanges by all-reduce do with a bucket alike.
#pragma once

#include <cstdint>
#include <string>

#include "trireme/comm/all_reducer.hpp"
#include "trireme/parallel/gradient_sync.hpp"
#include "trireme/perf/recorder.hpp"

namespace trireme::parallel {

// Multiplies its gradients by this replica's weight in the mean; 0 ignores them, whatever they are.
void weigh(const GradientBucket& bucket, float weight);

// Of the span of an all-reduce, or of one of its halves; the second one sends values.
enum class AllReducePart : std::uint8_t { whole, scatter, gather };
std::int32_t label_of(AllReducePart part, const GradientBucket& bucket, std::size_t index,
                      const comm::AllReducer& reducer, perf::Recorder& recorder);

}  // namespace trireme::parallel
