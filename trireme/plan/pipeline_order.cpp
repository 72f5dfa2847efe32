#include "trireme/plan/pipeline_order.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "trireme/base/error.hpp"

namespace trireme {
namespace {

using Task = PipelineOrder::Task;
using Kind = PipelineTask;

constexpr std::array<std::string_view, 4> kKinds{"gpipe", "1f1b", "interleaved", "zb-h1"};

void check(const PipelineShape& shape) {
  if (shape.stages < 1 || shape.micro_batches < 1 || shape.chunks < 1) {
    bad_input("a pipeline of {} stages and {} micro-batches: both must be at least 1", shape.stages,
              shape.micro_batches);
  }
}

PipelineOrder empty_order(const PipelineShape& shape, bool splits_backward = false) {
  return {.shape = shape,
          .splits_backward = splits_backward,
          .tasks = std::vector<std::vector<Task>>(static_cast<std::size_t>(shape.stages))};
}

PipelineOrder gpipe(const PipelineShape& shape) {
  PipelineOrder order = empty_order(shape);
  for (int stage = 0; stage < shape.stages; ++stage) {
    for (const Kind kind : {Kind::forward, Kind::backward}) {
      for (int m = 0; m < shape.micro_batches; ++m) order.tasks[stage].push_back({kind, stage, m});
    }
  }
  return order;
}

// Some forward tasks first; then one forward and one backward in turns.
void alternate(std::vector<Task>& tasks, const std::vector<Task>& forward, const std::vector<Task>& backward,
               std::size_t first) {
  first = std::min(first, forward.size());
  tasks.insert(tasks.end(), forward.begin(), forward.begin() + static_cast<std::ptrdiff_t>(first));
  for (std::size_t i = 0; i < backward.size(); ++i) {
    if (first + i < forward.size()) tasks.push_back(forward[first + i]);
    tasks.push_back(backward[i]);
  }
}

// Megatron's order: stages work on groups of as many micro-batches as there are stages, part by part.
PipelineOrder alternating(const PipelineShape& shape) {
  const int p = shape.stages, v = shape.chunks, m = shape.micro_batches;
  if (v > 1 && m % p != 0) {
    bad_input("the schedule interleaved needs a multiple of {} micro-batches, the number of stages; there are {}", p,
              m);
  }
  PipelineOrder order = empty_order(shape);
  for (int stage = 0; stage < p; ++stage) {
    std::vector<Task> forward, backward;
    for (int k = 0; k < m * v; ++k) {
      const int chunk = v == 1 ? 0 : k / p % v;
      const int micro_batch = v == 1 ? k : k / (p * v) * p + k % p;
      forward.push_back({Kind::forward, chunk * p + stage, micro_batch});
      backward.push_back({Kind::backward, (v - 1 - chunk) * p + stage, micro_batch});
    }
    const int behind = p - 1 - stage;
    const int first = v == 1 ? behind : 2 * behind + (v - 1) * p;
    alternate(order.tasks[stage], forward, backward, static_cast<std::size_t>(first));
  }
  return order;
}

// When tasks end; they are done in any order that respects what they depend on.
class Clock {
 public:
  Clock(const PipelineShape& shape, const PipelineCosts& costs, bool splits_backward)
      : shape_(shape), costs_(costs), splits_(splits_backward) {
    const auto count = static_cast<std::size_t>(shape.parts()) * static_cast<std::size_t>(shape.micro_batches);
    for (auto& each : ends_) each.assign(count, kNever);
  }

  double seconds(const Task& task) const {
    const auto part = static_cast<std::size_t>(task.part);
    if (task.kind == Kind::forward) return costs_.forward[part];
    if (task.kind == Kind::weights) return costs_.weights[part];
    return costs_.backward[part] + (splits_ ? 0 : costs_.weights[part]);
  }
  // When everything that it needs is there; infinity: not known yet.
  double ready(const Task& task) const {
    const auto [kind, part, m] = task;
    const int last = shape_.parts() - 1;
    if (kind == Kind::forward) return part == 0 ? 0 : arrival(Kind::forward, part - 1, part, m);
    if (kind == Kind::weights) return end(Kind::backward, part, m);
    const double own = end(Kind::forward, part, m);
    return part == last ? own : std::max(own, arrival(Kind::backward, part + 1, part, m));
  }
  void finish(const Task& task, double at) { end(task.kind, task.part, task.micro_batch) = at; }

 private:
  static constexpr double kNever = std::numeric_limits<double>::infinity();
  double& end(Kind kind, int part, int micro_batch) {
    return ends_[static_cast<std::size_t>(kind)]
                [static_cast<std::size_t>(part) * static_cast<std::size_t>(shape_.micro_batches) +
                 static_cast<std::size_t>(micro_batch)];
  }
  double end(Kind kind, int part, int micro_batch) const {
    return const_cast<Clock*>(this)->end(kind, part, micro_batch);
  }
  double arrival(Kind kind, int from, int to, int micro_batch) const {
    const bool stays = from % shape_.stages == to % shape_.stages;
    return end(kind, from, micro_batch) + (stays ? 0 : costs_.transfer);
  }

  const PipelineShape& shape_;
  const PipelineCosts& costs_;
  bool splits_;
  std::array<std::vector<double>, 3> ends_;  // [kind][part, micro-batch]
};

}  // namespace

std::string_view to_string(PipelineTask task) {
  constexpr std::array<std::string_view, 3> kNames{"forward", "backward", "weights"};
  return kNames[static_cast<std::size_t>(task)];
}

std::string_view to_string(PipelineKind kind) { return kKinds[static_cast<std::size_t>(kind)]; }

std::optional<PipelineKind> find_pipeline_kind(std::string_view name) {
  const auto found = std::find(kKinds.begin(), kKinds.end(), name);
  if (found == kKinds.end()) return std::nullopt;
  return static_cast<PipelineKind>(found - kKinds.begin());
}

int default_chunks(PipelineKind kind) { return kind == PipelineKind::interleaved ? 2 : 1; }

PipelineOrder make_pipeline_order(PipelineKind kind, const PipelineShape& shape) {
  check(shape);
  if (shape.chunks > 1 && kind != PipelineKind::interleaved) {
    bad_input("the schedule {} has one part of the network per stage; only interleaved has several", to_string(kind));
  }
  switch (kind) {
    case PipelineKind::gpipe:
      return gpipe(shape);
    case PipelineKind::one_forward:
    case PipelineKind::interleaved:
      return alternating(shape);
    case PipelineKind::zero_bubble: {
      const std::vector<double> equal(static_cast<std::size_t>(shape.parts()), 1.0);
      return list_order(shape, {.forward = equal, .backward = equal, .weights = equal}, true, shape.stages);
    }
  }
  return {};
}

PipelineOrder list_order(const PipelineShape& shape, const PipelineCosts& costs, bool splits_backward, int kept) {
  check(shape);
  PipelineOrder order = empty_order(shape, splits_backward);
  Clock clock(shape, costs, splits_backward);
  struct Stage {
    double free_at = 0;
    std::array<std::vector<int>, 3> next;  // [kind][chunk]: the micro-batch of the next task
    std::size_t tasks_left = 0;
  };
  std::vector<Stage> stages(static_cast<std::size_t>(shape.stages));
  const std::size_t kinds = splits_backward ? 3 : 2;
  for (Stage& stage : stages) {
    for (auto& each : stage.next) each.assign(static_cast<std::size_t>(shape.chunks), 0);
    stage.tasks_left = kinds * static_cast<std::size_t>(shape.chunks * shape.micro_batches);
  }
  const auto may_run = [&](const Stage& stage, const Task& task, std::size_t chunk) {
    if (task.micro_batch >= shape.micro_batches) return false;
    if (task.kind != Kind::forward) return true;
    return task.micro_batch - stage.next[kinds - 1][chunk] < kept;
  };
  while (true) {
    // The task that can start first of all stages; of several in a stage the most urgent one.
    int best_stage = -1;
    Task best;
    double best_start = std::numeric_limits<double>::infinity();
    for (int s = 0; s < shape.stages; ++s) {
      const Stage& stage = stages[static_cast<std::size_t>(s)];
      for (const Kind kind : {Kind::backward, Kind::forward, Kind::weights}) {
        if (kind == Kind::weights && !splits_backward) continue;
        for (int chunk = shape.chunks - 1; chunk >= 0; --chunk) {
          const auto at = static_cast<std::size_t>(chunk);
          const Task task{kind, chunk * shape.stages + s, stage.next[static_cast<std::size_t>(kind)][at]};
          if (!may_run(stage, task, at)) continue;
          const double start = std::max(stage.free_at, clock.ready(task));
          if (start < best_start) {
            best_start = start;
            best_stage = s;
            best = task;
          }
        }
      }
    }
    if (best_stage < 0) break;
    Stage& stage = stages[static_cast<std::size_t>(best_stage)];
    stage.free_at = best_start + clock.seconds(best);
    clock.finish(best, stage.free_at);
    ++stage.next[static_cast<std::size_t>(best.kind)][static_cast<std::size_t>(best.part / shape.stages)];
    --stage.tasks_left;
    order.tasks[static_cast<std::size_t>(best_stage)].push_back(best);
  }
  for (const Stage& stage : stages) {
    if (stage.tasks_left > 0)
      fail(ErrorKind::failed, "{} kept micro-batches are too few for {} stages", kept, shape.stages);
  }
  return order;
}

double PipelineTimes::idle_share() const {
  double sum = 0;
  for (const double each : busy) sum += each;
  return total > 0 ? 1 - sum / (total * static_cast<double>(busy.size())) : 0;
}

PipelineTimes predict(const PipelineOrder& order, const PipelineCosts& costs) {
  const auto stages = static_cast<std::size_t>(order.shape.stages);
  PipelineTimes times{.tasks = std::vector<std::vector<PipelineTimes::Span>>(stages),
                      .busy = std::vector<double>(stages, 0.0),
                      .kept = std::vector<int>(stages, 0)};
  Clock clock(order.shape, costs, order.splits_backward);
  std::vector<int> kept(stages, 0);
  std::vector<double> free_at(stages, 0.0);
  const Kind last_kind = order.splits_backward ? Kind::weights : Kind::backward;
  for (bool progress = true; progress;) {
    progress = false;
    for (std::size_t stage = 0; stage < stages; ++stage) {
      while (times.tasks[stage].size() < order.tasks[stage].size()) {
        const Task& task = order.tasks[stage][times.tasks[stage].size()];
        const double start = std::max(free_at[stage], clock.ready(task));
        if (std::isinf(start)) break;
        free_at[stage] = start + clock.seconds(task);
        clock.finish(task, free_at[stage]);
        times.tasks[stage].push_back({start, free_at[stage]});
        times.busy[stage] += clock.seconds(task);
        times.total = std::max(times.total, free_at[stage]);
        if (task.kind == Kind::forward) times.kept[stage] = std::max(times.kept[stage], ++kept[stage]);
        if (task.kind == last_kind) --kept[stage];
        progress = true;
      }
    }
  }
  for (std::size_t stage = 0; stage < stages; ++stage) {
    if (times.tasks[stage].size() < order.tasks[stage].size()) {
      fail(ErrorKind::failed, "stage {} of the pipeline would wait forever for its task {} of {}", stage,
           times.tasks[stage].size() + 1, order.tasks[stage].size());
    }
  }
  return times;
}

std::string draw(const PipelineOrder& order, const PipelineTimes& times, int columns) {
  // Forward: the micro-batch's last digit; backward: letters a to j for 0 to 9; weights: w.
  std::string text;
  const double per_column = times.total / std::max(1, columns);
  for (std::size_t stage = 0; stage < order.tasks.size(); ++stage) {
    std::string line(static_cast<std::size_t>(columns), '.');
    for (std::size_t i = 0; i < order.tasks[stage].size(); ++i) {
      const Task& task = order.tasks[stage][i];
      const auto from = static_cast<std::size_t>(std::lround(times.tasks[stage][i].start / per_column));
      const auto to = static_cast<std::size_t>(std::lround(times.tasks[stage][i].end / per_column));
      const char digit = static_cast<char>('0' + task.micro_batch % 10);
      const char mark = task.kind == Kind::forward    ? digit
                        : task.kind == Kind::backward ? static_cast<char>('a' + task.micro_batch % 10)
                                                      : 'w';
      for (std::size_t at = from; at < std::max(to, from + 1) && at < line.size(); ++at) line[at] = mark;
    }
    text += fmt::format("stage {} |{}|\n", stage, line);
  }
  return text;
}

}  // namespace trireme
