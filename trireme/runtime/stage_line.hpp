// The line of a pipeline's stage in a trace: what its worker is at, one span after the other. "forward 3" is the work
// on micro-batch 3, "bubble" waiting for another stage, "reduce" waiting for the sum of gradients over the workers of
// the stage. Used by Executable.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "trireme/perf/recorder.hpp"
#include "trireme/plan/program.hpp"

namespace trireme {

class StageLine {
 public:
  StageLine() = default;  // without a trace
  StageLine(perf::Recorder& recorder, const Program& program);

  static perf::Track& track(perf::Recorder& recorder, int stage);
  static perf::SpanLabel bubble(std::string waits_for);

  // Ends what was before, unless it is the same.
  void go_to_instruction(std::size_t index) {
    if (track_ != nullptr) go_to(labels_[index]);
  }
  void go_to_reduce() {
    if (track_ != nullptr) go_to(reduce_);
  }
  void end();

 private:
  void go_to(std::int32_t label);

  perf::Track* track_ = nullptr;
  std::vector<std::int32_t> labels_;  // [instruction]
  std::int32_t reduce_ = 0;
  std::optional<perf::Span> open_;
};

}  // namespace trireme
