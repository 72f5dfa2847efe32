// Schedules of a pipeline as data: in which order each stage works on the micro-batches of a step. compile() makes the
// stages' programs from an order, `trireme models --plan` draws it, and the planner predicts its time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace trireme {

enum class PipelineTask : std::uint8_t {
  forward,
  backward,  // gradients of inputs; and of weights, unless the order has tasks for them
  weights,   // gradients of weights
};

std::string_view to_string(PipelineTask task);

enum class PipelineKind : std::uint8_t {
  gpipe,        // all micro-batches forward, then all backward (Huang et al. 2019)
  one_forward,  // "1f1b": backward as early as possible, so that stages keep few micro-batches (Narayanan et al. 2019)
  interleaved,  // 1f1b with several parts of the network per stage (Narayanan et al. 2021)
  zero_bubble,  // "zb-h1": gradients of weights fill the gaps of 1f1b, in its memory (Qi et al. 2024)
};
std::string_view to_string(PipelineKind kind);
std::optional<PipelineKind> find_pipeline_kind(std::string_view name);

struct PipelineShape {
  int stages = 1;
  int micro_batches = 1;
  int chunks = 1;                  // parts of the network per stage; stage s has the parts s, s + stages, ...
  std::vector<int> replicas = {};  // [stage]: workers, of which m % replicas gets micro-batch m; empty: one each

  int parts() const { return stages * chunks; }
  int replicas_of(int stage) const { return replicas.empty() ? 1 : replicas[static_cast<std::size_t>(stage)]; }
  int workers_from(int stage) const;  // of this stage and those behind it

  // Workers are numbered stage by stage.
  int first_worker(int stage) const { return workers_from(0) - workers_from(stage); }
  int worker_of(int stage, int micro_batch) const { return first_worker(stage) + micro_batch % replicas_of(stage); }
  struct Place {
    int stage = 0;
    int replica = 0;
    int replicas = 1;
  };
  Place place_of(int worker) const;
};

// Without the updates, which follow a part's last task, and the transfers, which follow from the network. A worker does
// those tasks of its stage that are for its micro-batches.
struct PipelineOrder {
  struct Task {
    PipelineTask kind = PipelineTask::forward;
    int part = 0;
    int micro_batch = 0;
    bool operator==(const Task&) const = default;
  };
  PipelineShape shape;
  bool splits_backward = false;          // has tasks for weights
  std::vector<std::vector<Task>> tasks;  // [stage]

  int stage_of(int part) const { return part % shape.stages; }
};

// Seconds per task of a part, and of a micro-batch's transfers between a part and the next, which take turns on the
// links of both workers.
struct PipelineCosts {
  std::vector<double> forward = {}, backward = {}, weights = {};  // [part]; backward without weights
  std::vector<double> transfer = {};                              // [part before]; empty: none
  bool operator==(const PipelineCosts&) const = default;
};

// Costs matter to zero_bubble alone; without them, stages have as much to do as they have workers. Error(bad_input) if
// the shape does not suit the kind.
PipelineOrder make_pipeline_order(PipelineKind kind, const PipelineShape& shape, const PipelineCosts& costs = {});
int default_chunks(PipelineKind kind);  // parts per stage

// The order that results if each worker always takes the most urgent task that is ready: backward, then forward as
// long as its stage keeps no more than `kept` micro-batches per part, then weights.
PipelineOrder list_order(const PipelineShape& shape, const PipelineCosts& costs, bool splits_backward, int kept);

struct PipelineTimes {
  struct Span {
    double start = 0, end = 0;
  };
  std::vector<std::vector<Span>> tasks;  // [stage][task]
  std::vector<double> busy;              // [stage]: mean of its workers
  std::vector<int> kept;  // [stage]: micro-batches, counted per part, that a worker keeps at the same time
  double total = 0;
  double idle_share = 0;  // of all workers
};
// Error(failed) if the stages would wait for each other forever.
PipelineTimes predict(const PipelineOrder& order, const PipelineCosts& costs);

// One line per stage, about `columns` wide: the last digit of a micro-batch in forward, a to j in backward, w.
std::string draw(const PipelineOrder& order, const PipelineTimes& times, int columns);

}  // namespace trireme
