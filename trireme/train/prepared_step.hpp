// One step, ready to run: the network, its programs and the synthetic batch in place. Made by Worker, and by the trials
// that find out over how many groups of cores a batch is best split.
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
  // threads.groups says over how many groups the batch is split. The calling thread becomes the first group's. Where
  // there are replicas, the step is one of all of them (collective). The batch is this rank's share of the global one.
  // `restore`, where it is given, sets the variables before the replicas get to know them.
  PreparedStep(const StepConfig& config, const perf::ThreadPlan& threads, const Backend& backend,
               parallel::Replicas* replicas = nullptr, int rank = 0, const std::function<void(Session&)>& restore = {});

  // The batch of the steps from now on: as many images and labels as the step takes, in row-major order. After start(),
  // it comes to a GPU beside that step.
  void set_batch(std::span<const float> images, std::span<const std::int32_t> labels);
  // The place of the batch's first image among those of all workers and runs of one update: what dropout is drawn by.
  void set_first_sample(std::int64_t first);
  // Runs the step and returns the loss; the learning rate has no effect when forward only.
  double run(double learning_rate);
  // The same in parts: where a GPU runs it, start() returns at once, and wait() says how long it took.
  void start(double learning_rate);
  double wait();
  double loss() const { return split_->mean_output(0); }
  std::optional<double> accuracy() const;  // of the batch, in training; nothing: it was not asked for

  const Graph& graph() const { return graph_; }
  Session& session() { return *session_; }
  const Model& model() const { return step_.model; }
  std::optional<LossScaleState> loss_scale() const;  // none: the loss is not scaled
  bool trains() const { return step_.learning_rate.node >= 0; }
  int groups() const { return split_->groups(); }
  // Of the first group; the others' are the same.
  Executable& executable() { return split_->group(0); }
  const Executable& executable() const { return split_->group(0); }
  BatchSplit& split() { return *split_; }
  void enable_profile();
  void set_recorder(perf::Recorder& recorder);

  // Of all groups together.
  double flops() const;
  MemorySummary memory() const;

 private:
  void fill_batch(std::uint64_t seed, std::int64_t batch_size, int rank);

  const bool has_accuracy_;
  Graph graph_;
  StepGraph step_;
  std::unique_ptr<Session> session_;
  BatchSplit* split_ = nullptr;  // the session's
  // [group]: where the executable reads them, looked up once.
  std::vector<std::span<float>> learning_rate_inputs_, image_inputs_;
  std::vector<std::span<std::int32_t>> label_inputs_;
};

}  // namespace trireme::train
