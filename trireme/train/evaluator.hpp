// Accuracy of a network on the validation images: Evaluator keeps its own copy of the variables, uses running
// statistics, and counts. Used by Trainer, which lends it values, and by CheckpointEvaluation.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>

#include "trireme/data/choose_preprocessing.hpp"
#include "trireme/data/pipeline.hpp"
#include "trireme/models/model.hpp"
#include "trireme/perf/spinning.hpp"
#include "trireme/runtime/session.hpp"
#include "trireme/train/accuracy.hpp"
#include "trireme/train/data_config.hpp"

namespace trireme::train {

// Counts correct predictions per row of logits; samples with a label below 0 are padding.
Accuracy count_correct(std::span<const float> logits, std::span<const std::int32_t> labels, std::int64_t classes);

class Evaluator {
 public:
  struct Options {
    std::string model;
    std::int64_t classes = 0;      // 0: the model's own
    std::int64_t batch_size = 32;  // divided among the session's core groups
    SessionOptions session = {};
  };
  Evaluator(const Options& options, const Backend& backend);  // the backend must outlive this

  void load(const std::function<HostTensor(const Node& variable)>& value_of);
  void load(const VariableStore& trained);

  // Evaluates to the pipeline's end; nothing if asked to stop before. The pipeline's batch size must equal this one's.
  using OnProgress = std::function<void(std::int64_t samples)>;  // evaluated so far
  std::optional<Accuracy> run(data::Pipeline& pipeline, const std::stop_token& stop,
                              const OnProgress& on_progress = {});
  Accuracy run(data::Pipeline& pipeline) { return *run(pipeline, {}); }

  const Model& model() const { return model_; }
  VariableStore& variables() { return session_->variables(); }

 private:
  Graph graph_;
  Model model_;
  std::unique_ptr<Session> session_;
  BatchSplit* forward_ = nullptr;
  std::shared_ptr<void> spinning_ = perf::limit_spinning_under_load();
};

struct EvaluationData {
  std::shared_ptr<const data::Dataset> dataset;
  data::Glimpse images;
  data::PipelineOptions pipeline;  // broken images are reported and skipped
};
EvaluationData open_evaluation_data(const DataConfig& config, const Network& model, std::int64_t batch_size);

// Sums the counts. Nothing if a worker was stopped: the rest is partial. Error(failed) if every image is broken.
Evaluation added_up(std::span<const std::optional<Accuracy>> workers);

}  // namespace trireme::train
