#include "trireme/perf/recorder.hpp"

#include <algorithm>

namespace trireme::perf {

std::string_view to_string(SpanKind kind) {
  switch (kind) {
    case SpanKind::step:
      return "step";
    case SpanKind::compute:
      return "compute";
    case SpanKind::optimizer:
      return "optimizer";
    case SpanKind::communication:
      return "communication";
    case SpanKind::waiting:
      return "waiting";
    case SpanKind::input:
      return "input";
    case SpanKind::decode:
      return "decode";
    case SpanKind::launch:
      return "launch";
    case SpanKind::barrier:
      return "barrier";
  }
  return "";
}

Track& Recorder::track(const std::string& name, std::size_t capacity) {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(tracks_.begin(), tracks_.end(), [&](const Track& at) { return at.name() == name; });
  if (found != tracks_.end()) return *found;
  return tracks_.emplace_back(name, capacity > 0 ? capacity : spans_per_track_, recording_);
}

std::int32_t Recorder::label(SpanLabel label) {
  const std::lock_guard lock(mutex_);
  labels_.push_back(std::move(label));
  return static_cast<std::int32_t>(labels_.size() - 1);
}

}  // namespace trireme::perf
