// One step, ready to run: the network, its programs and the synthetic batch. Made by Worker, and by the trials that
// choose how to split a batch over core groups.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "trireme/parallel/replicas.hpp"
#include "trireme/perf/threads.hpp"
#include "trireme/runtime/batch_split.hpp"
#include "trireme/runtime/session.hpp"
#include "trireme/runtime/variable_store.hpp"
#include "trireme/train/accuracy.hpp"
#include "trireme/train/step_config.hpp"
#include "trireme/train/step_graph.hpp"

namespace trireme::train {

class PreparedStep {
 public:
  // threads.groups is the number of groups the batch is split over. The calling thread becomes the first group's.
  // Collective if there are replicas: the step then spans all of them, and the batch is this rank's share of the global
  // one. `restore`, if given, sets the variables before the replicas share them.
  PreparedStep(const StepConfig& config, const perf::ThreadPlan& threads, const Backend& backend,
               parallel::Replicas* replicas = nullptr, int rank = 0, const std::function<void(Session&)>& restore = {},
               StageLink* link = nullptr);

  // One step's images and labels, row-major, for the following steps. After start(), copied to a GPU beside that step.
  // In a pipeline, those of one of this worker's micro-batches.
  void set_batch(std::span<const float> images, std::span<const std::int32_t> labels, int micro_batch = 0);
  bool needs_images() const { return executable().needs(model().images); }
  bool needs_batches() const {  // not in the middle of a pipeline
    return needs_images() || executable().needs(model().labels);
  }
  int micro_batches() const { return executable().program().micro_batches; }
  // Position of the batch's first image within one update over all workers and runs; dropout draws depend on it.
  void set_first_sample(std::int64_t first);
  double run(double learning_rate);  // the loss; the rate has no effect if forward only
  // The same in two parts: on a GPU, start() returns at once and wait() returns the duration.
  void start(double learning_rate);
  double wait();
  double loss() const { return split_->mean_output(0); }
  bool knows_loss() const { return executable().program().fetches[0] >= 0; }  // otherwise another stage does
  std::optional<double> accuracy() const;  // of the training batch; nothing: not requested

  const Graph& graph() const { return graph_; }
  Session& session() { return *session_; }
  const Model& model() const { return step_.model; }
  std::optional<LossScaleState> loss_scale() const;  // none: the loss is not scaled
  bool trains() const { return step_.learning_rate.node >= 0; }
  int groups() const { return split_->groups(); }
  // The first group's; the others are the same.
  Executable& executable() { return split_->group(0); }
  const Executable& executable() const { return split_->group(0); }
  BatchSplit& split() { return *split_; }
  void enable_profile();
  void set_recorder(perf::Recorder& recorder);

  double flops() const;  // over all groups, also below
  MemorySummary memory() const;

 private:
  void fill_batch(const StepConfig& config, int rank);

  const bool has_accuracy_;
  Graph graph_;
  StepGraph step_;
  std::unique_ptr<Session> session_;
  BatchSplit* split_ = nullptr;  // owned by the session
  // [group]: input memory of the executable, looked up once.
  std::vector<std::span<float>> learning_rate_inputs_, image_inputs_;
  std::vector<std::span<std::int32_t>> label_inputs_;
};

}  // namespace trireme::train
