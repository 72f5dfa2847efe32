#include "trireme/runtime/stage_line.hpp"

#include <fmt/format.h>

#include <map>

#include "trireme/plan/schedule.hpp"

namespace trireme {
namespace {

std::string task_name(const Instruction& instruction, int stage) {
  const std::string name = fmt::format("{} {}", to_string(instruction.task), instruction.micro_batch);
  return instruction.part == stage ? name : fmt::format("{} of part {}", name, instruction.part);
}

}  // namespace

StageLine::StageLine(perf::Recorder& recorder, const Program& program) : track_(&track(recorder, program.stage)) {
  using perf::SpanKind;
  reduce_ = recorder.label({.name = "reduce", .kind = SpanKind::task});
  const std::int32_t update = recorder.label({.name = "update", .kind = SpanKind::task});
  std::map<std::string, std::int32_t> tasks;
  for (const Instruction& instruction : program.instructions) {
    if (instruction.transfer.kind != Transfer::Kind::none) {
      labels_.push_back(recorder.label(bubble(instruction.name)));
    } else if (applies_gradients(instruction)) {
      labels_.push_back(update);
    } else {
      const auto [task, is_new] = tasks.try_emplace(task_name(instruction, program.stage));
      if (is_new) task->second = recorder.label({.name = task->first, .kind = SpanKind::task});
      labels_.push_back(task->second);
    }
  }
}

perf::Track& StageLine::track(perf::Recorder& recorder, int stage) {
  return recorder.track(fmt::format("stage {}", stage));
}

perf::SpanLabel StageLine::bubble(std::string waits_for) {
  return {.name = "bubble", .kind = perf::SpanKind::bubble, .detail = std::move(waits_for)};
}

void StageLine::go_to(std::int32_t label) {
  if (open_ && open_->label == label) return;
  end();
  if (track_->is_recording()) open_ = {.begin = steady_nanoseconds(), .label = label};
}

void StageLine::end() {
  if (!open_) return;
  open_->end = steady_nanoseconds();
  track_->add(*open_);
  open_.reset();
}

}  // namespace trireme
