#include "trireme/parallel/bucket_work.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace trireme::parallel {

void weigh(const GradientBucket& bucket, float weight) {
  if (weight == 1) return;
  for (const std::span<float> part : bucket.parts) {
    if (weight == 0) {  // ignored values may be NaN
      std::fill(part.begin(), part.end(), 0.0f);
    } else {
      for (float& value : part) value *= weight;
    }
  }
}

std::int32_t label_of(AllReducePart part, const GradientBucket& bucket, std::size_t index,
                      const comm::AllReducer& reducer, perf::Recorder& recorder) {
  const std::int64_t ranks = reducer.communicator().size();
  const bool sends_values = part == AllReducePart::gather;
  const bool halved = reducer.wire_for(bucket.bytes()) != comm::Wire::fp32 && !sends_values;
  const std::int64_t bytes = halved ? bucket.bytes() / 2 : bucket.bytes();
  const std::int64_t slices = (part == AllReducePart::whole ? 2 : 1) * (ranks - 1);  // on each link
  return recorder.label({.name = fmt::format("bucket {}{}", index + 1, sends_values ? ", values" : ""),
                         .kind = perf::SpanKind::communication,
                         .detail = bucket.name,
                         .bytes = bytes,
                         .link_bytes = slices * bytes / ranks,
                         .peers = fmt::format("ranks 0-{}", ranks - 1)});
}

}  // namespace trireme::parallel
