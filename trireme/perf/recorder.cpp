#include "trireme/perf/recorder.hpp"

#include <algorithm>
#include <array>

namespace trireme::perf {

std::string_view to_string(SpanKind kind) {
  constexpr std::array<std::string_view, kSpanKinds> kNames{"step",    "compute", "optimizer", "communication",
                                                            "waiting", "input",   "decode",    "launch",
                                                            "barrier", "task",    "bubble",    "transfer"};
  return kNames.at(static_cast<std::size_t>(kind));
}

Track& Recorder::track(const std::string& name, std::size_t capacity) {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find(tracks_, name, &Track::name);
  if (found != tracks_.end()) return *found;
  return tracks_.emplace_back(name, capacity > 0 ? capacity : spans_per_track_, recording_);
}

std::int32_t Recorder::label(SpanLabel label) {
  const std::lock_guard lock(mutex_);
  labels_.push_back(std::move(label));
  return static_cast<std::int32_t>(labels_.size() - 1);
}

}  // namespace trireme::perf
