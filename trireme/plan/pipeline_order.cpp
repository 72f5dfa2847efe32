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
  for (int stage = 0; stage < shape.stages; ++stage) {
    if (shape.micro_batches % shape.replicas_of(stage) != 0) {
      bad_input("{} micro-batches cannot be divided evenly over the {} workers of a stage", shape.micro_batches,
                shape.replicas_of(stage));
    }
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

// As many forward tasks first that the first gradient arrives when they end: one for each worker from here on.
PipelineOrder one_forward(const PipelineShape& shape) {
  PipelineOrder order = empty_order(shape);
  for (int stage = 0; stage < shape.stages; ++stage) {
    std::vector<Task> forward, backward;
    for (int m = 0; m < shape.micro_batches; ++m) {
      forward.push_back({Kind::forward, stage, m});
      backward.push_back({Kind::backward, stage, m});
    }
    const int replicas = shape.replicas_of(stage);
    const int rounds = (shape.workers_from(stage) + replicas - 1) / replicas;
    alternate(order.tasks[stage], forward, backward, static_cast<std::size_t>(replicas * (rounds - 1)));
  }
  return order;
}

// Megatron's order: stages work on groups of as many micro-batches as there are stages, part by part. With several
// workers per stage, they do the same side by side.
PipelineOrder interleaved(const PipelineShape& shape) {
  const int p = shape.stages, v = shape.chunks, replicas = shape.replicas_of(0);
  for (int stage = 1; stage < p; ++stage) {
    if (shape.replicas_of(stage) != replicas)
      bad_input("the schedule interleaved needs equally many workers in each stage");
  }
  const int rounds = shape.micro_batches / replicas;
  if (rounds % p != 0) {
    bad_input("the schedule interleaved needs a multiple of {} micro-batches, the number of workers; there are {}",
              p * replicas, shape.micro_batches);
  }
  PipelineOrder order = empty_order(shape);
  for (int stage = 0; stage < p; ++stage) {
    std::vector<Task> forward, backward;
    for (int k = 0; k < rounds * v; ++k) {
      const int chunk = k / p % v;
      const int round = k / (p * v) * p + k % p;
      for (int m = round * replicas; m < (round + 1) * replicas; ++m) {
        forward.push_back({Kind::forward, chunk * p + stage, m});
        backward.push_back({Kind::backward, (v - 1 - chunk) * p + stage, m});
      }
    }
    const int first = 2 * (p - 1 - stage) + (v - 1) * p;
    alternate(order.tasks[stage], forward, backward, static_cast<std::size_t>(first * replicas));
  }
  return order;
}

// When tasks end, and when what they send arrives. Tasks are finished in an order that respects what they depend on.
class Clock {
 public:
  Clock(const PipelineShape& shape, const PipelineCosts& costs, bool splits_backward)
      : shape_(shape), costs_(costs), splits_(splits_backward) {
    const auto count = static_cast<std::size_t>(shape.parts()) * static_cast<std::size_t>(shape.micro_batches);
    for (auto* times : {&ends_, &arrivals_}) {
      for (auto& each : *times) each.assign(count, kNever);
    }
    for (int stage = 0; stage < shape.stages; ++stage) {
      first_worker_.push_back(static_cast<std::size_t>(shape.first_worker(stage)));
    }
    sends_until_.assign(static_cast<std::size_t>(shape.workers_from(0)), 0);
    receives_until_ = sends_until_;
    free_at_ = sends_until_;
  }

  std::size_t worker(const Task& task) const {
    const int stage = task.part % shape_.stages;
    return first_worker_[static_cast<std::size_t>(stage)] +
           static_cast<std::size_t>(task.micro_batch % shape_.replicas_of(stage));
  }
  double seconds(const Task& task) const {
    const auto part = static_cast<std::size_t>(task.part);
    if (task.kind == Kind::forward) return costs_.forward[part];
    if (task.kind == Kind::weights) return costs_.weights[part];
    return costs_.backward[part] + (splits_ ? 0 : costs_.weights[part]);
  }
  // When its worker can begin it; infinity: not known yet.
  double start(const Task& task) const { return std::max(free_at_[worker(task)], ready(task)); }
  void finish(const Task& task) {
    const double end = start(task) + seconds(task);
    free_at_[worker(task)] = end;
    ends_[index(task.kind)][index(task)] = end;
    arrivals_[index(task.kind)][index(task)] = arrival(task, end);
  }

 private:
  static constexpr double kNever = std::numeric_limits<double>::infinity();
  static std::size_t index(Kind kind) { return static_cast<std::size_t>(kind); }
  std::size_t index(const Task& task) const {
    return static_cast<std::size_t>(task.part) * static_cast<std::size_t>(shape_.micro_batches) +
           static_cast<std::size_t>(task.micro_batch);
  }

  double ready(const Task& task) const {
    const auto [kind, part, m] = task;
    if (kind == Kind::forward) return part == 0 ? 0 : arrivals_[index(kind)][index({kind, part - 1, m})];
    if (kind == Kind::weights) return ends_[index(Kind::backward)][index(task)];
    const double own = ends_[index(Kind::forward)][index(task)];
    const bool is_last = part == shape_.parts() - 1;
    return is_last ? own : std::max(own, arrivals_[index(kind)][index({kind, part + 1, m})]);
  }
  double arrival(const Task& task, double end) {
    Task next = task;
    next.part += task.kind == Kind::forward ? 1 : -1;
    const bool sends = task.kind != Kind::weights && next.part >= 0 && next.part < shape_.parts();
    if (!sends || costs_.transfer.empty() || worker(next) == worker(task)) return end;
    double& sender = sends_until_[worker(task)];
    double& receiver = receives_until_[worker(next)];
    const double before = std::max({end, sender, receiver});
    sender = receiver = before + costs_.transfer[static_cast<std::size_t>(std::min(task.part, next.part))];
    return sender;
  }

  const PipelineShape& shape_;
  const PipelineCosts& costs_;
  bool splits_;
  std::array<std::vector<double>, 3> ends_, arrivals_;          // [kind][part, micro-batch]; arrivals at the next part
  std::vector<std::size_t> first_worker_;                       // [stage]
  std::vector<double> free_at_, sends_until_, receives_until_;  // [worker]
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

int PipelineShape::workers_from(int stage) const {
  int workers = 0;
  for (int each = stage; each < stages; ++each) workers += replicas_of(each);
  return workers;
}

PipelineShape::Place PipelineShape::place_of(int worker) const {
  int stage = 0;
  while (stage + 1 < stages && worker >= first_worker(stage + 1)) ++stage;
  return {.stage = stage, .replica = worker - first_worker(stage), .replicas = replicas_of(stage)};
}

PipelineOrder make_pipeline_order(PipelineKind kind, const PipelineShape& shape, const PipelineCosts& costs) {
  check(shape);
  if (shape.chunks > 1 && kind != PipelineKind::interleaved) {
    bad_input("the schedule {} has one part of the network per stage; only interleaved has several", to_string(kind));
  }
  switch (kind) {
    case PipelineKind::gpipe:
      return gpipe(shape);
    case PipelineKind::one_forward:
      return one_forward(shape);
    case PipelineKind::interleaved:
      return shape.chunks > 1 ? interleaved(shape) : one_forward(shape);
    case PipelineKind::zero_bubble: {
      if (!costs.forward.empty()) return list_order(shape, costs, true, shape.workers_from(0));
      std::vector<double> balanced;  // a stage of more workers has more to do
      for (int part = 0; part < shape.parts(); ++part) balanced.push_back(shape.replicas_of(part % shape.stages));
      return list_order(shape, {.forward = balanced, .backward = balanced, .weights = balanced}, true,
                        shape.workers_from(0));
    }
  }
  return {};
}

PipelineOrder list_order(const PipelineShape& shape, const PipelineCosts& costs, bool splits_backward, int kept) {
  check(shape);
  PipelineOrder order = empty_order(shape, splits_backward);
  Clock clock(shape, costs, splits_backward);
  struct Worker {
    int stage = 0;
    int replicas = 1;
    int most_kept = 1;
    std::array<std::vector<int>, 3> next;  // [kind][chunk]: the micro-batch of the next task
  };
  std::vector<Worker> workers;
  for (int stage = 0; stage < shape.stages; ++stage) {
    const int replicas = shape.replicas_of(stage);
    for (int replica = 0; replica < replicas; ++replica) {
      Worker& worker = workers.emplace_back(
          Worker{.stage = stage, .replicas = replicas, .most_kept = (kept + replicas - 1) / replicas, .next = {}});
      for (auto& each : worker.next) each.assign(static_cast<std::size_t>(shape.chunks), replica);
    }
  }
  const auto last = static_cast<std::size_t>(splits_backward ? Kind::weights : Kind::backward);
  const auto may_run = [&](const Worker& worker, const Task& task, std::size_t chunk) {
    if (task.micro_batch >= shape.micro_batches) return false;
    if (task.kind != Kind::forward) return true;
    return (task.micro_batch - worker.next[last][chunk]) / worker.replicas < worker.most_kept;
  };
  std::size_t left = (last + 1) * static_cast<std::size_t>(shape.parts() * shape.micro_batches);
  for (; left > 0; --left) {
    // The task that can start first of all workers; of several of a worker the most urgent one.
    Worker* best_worker = nullptr;
    Task best;
    double best_start = std::numeric_limits<double>::infinity();
    for (Worker& worker : workers) {
      for (const Kind kind : {Kind::backward, Kind::forward, Kind::weights}) {
        if (kind == Kind::weights && !splits_backward) continue;
        for (int chunk = shape.chunks - 1; chunk >= 0; --chunk) {
          const auto at = static_cast<std::size_t>(chunk);
          const Task task{kind, chunk * shape.stages + worker.stage, worker.next[static_cast<std::size_t>(kind)][at]};
          if (!may_run(worker, task, at)) continue;
          const double start = clock.start(task);
          if (start < best_start) {
            best_start = start;
            best_worker = &worker;
            best = task;
          }
        }
      }
    }
    if (best_worker == nullptr)
      fail(ErrorKind::failed, "{} kept micro-batches are too few for {} stages", kept, shape.stages);
    clock.finish(best);
    best_worker->next[static_cast<std::size_t>(best.kind)][static_cast<std::size_t>(best.part / shape.stages)] +=
        best_worker->replicas;
    order.tasks[static_cast<std::size_t>(best_worker->stage)].push_back(best);
  }
  return order;
}

PipelineTimes predict(const PipelineOrder& order, const PipelineCosts& costs) {
  const PipelineShape& shape = order.shape;
  const auto stages = static_cast<std::size_t>(shape.stages);
  PipelineTimes times{.tasks = std::vector<std::vector<PipelineTimes::Span>>(stages),
                      .busy = std::vector<double>(stages, 0.0),
                      .kept = std::vector<int>(stages, 0)};
  Clock clock(shape, costs, order.splits_backward);
  struct Worker {
    std::size_t stage = 0;
    std::vector<std::size_t> tasks = {};  // of its stage
    std::size_t done = 0;
    int kept = 0;
  };
  std::vector<Worker> workers(static_cast<std::size_t>(shape.workers_from(0)));
  for (std::size_t stage = 0; stage < stages; ++stage) {
    times.tasks[stage].resize(order.tasks[stage].size());
    for (std::size_t i = 0; i < order.tasks[stage].size(); ++i) {
      Worker& worker = workers[clock.worker(order.tasks[stage][i])];
      worker.stage = stage;
      worker.tasks.push_back(i);
    }
  }
  const Kind last_kind = order.splits_backward ? Kind::weights : Kind::backward;
  double busy = 0;
  while (true) {
    // The task that begins first, so that links are taken in turn.
    Worker* first = nullptr;
    double start = std::numeric_limits<double>::infinity();
    for (Worker& worker : workers) {
      if (worker.done == worker.tasks.size()) continue;
      const double at = clock.start(order.tasks[worker.stage][worker.tasks[worker.done]]);
      if (at >= start) continue;
      start = at;
      first = &worker;
    }
    if (first == nullptr) break;
    const std::size_t stage = first->stage, at = first->tasks[first->done++];
    const Task& task = order.tasks[stage][at];
    clock.finish(task);
    const double end = start + clock.seconds(task);
    times.tasks[stage][at] = {start, end};
    busy += clock.seconds(task);
    times.busy[stage] += clock.seconds(task) / shape.replicas_of(static_cast<int>(stage));
    times.total = std::max(times.total, end);
    if (task.kind == Kind::forward) times.kept[stage] = std::max(times.kept[stage], ++first->kept);
    if (task.kind == last_kind) --first->kept;
  }
  for (const Worker& worker : workers) {
    if (worker.done == worker.tasks.size()) continue;
    fail(ErrorKind::failed, "stage {} of the pipeline would wait forever for its task {} of {}", worker.stage,
         worker.done + 1, worker.tasks.size());
  }
  if (times.total > 0) times.idle_share = 1 - busy / (times.total * shape.workers_from(0));
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
