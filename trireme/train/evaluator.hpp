// How good a network is on data that it has not seen: the validation images, an Evaluator that has a copy of the
// variables, uses running statistics and counts, and what several workers have counted. Used by Trainer, which lends it
// its values, and by CheckpointEvaluation.
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
#include "trireme/runtime/session.hpp"
#include "trireme/train/accuracy.hpp"
#include "trireme/train/data_config.hpp"

namespace trireme::train {

// Counts what a row of logits says about each sample; samples with a label below 0 are padding.
Accuracy count_correct(std::span<const float> logits, std::span<const std::int32_t> labels, std::int64_t classes);

class Evaluator {
 public:
  struct Options {
    std::string model;
    std::int64_t classes = 0;      // 0: the model's own
    std::int64_t batch_size = 32;  // divided over the session's groups of cores
    SessionOptions session = {};
  };
  // The backend outlives this.
  Evaluator(const Options& options, const Backend& backend);

  // The value of each variable, by its name.
  void load(const std::function<HostTensor(const Node& variable)>& value_of);
  void load(const VariableStore& trained);

  // Everything that comes until the pipeline's end; nothing where it was asked to stop before. Its batches have this
  // one's size.
  using OnProgress = std::function<void(std::int64_t samples)>;  // looked at so far
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
};

struct EvaluationData {
  std::shared_ptr<const data::Dataset> dataset;
  data::Glimpse images;
  data::PipelineOptions pipeline;  // broken images are named and left out
};
EvaluationData open_evaluation_data(const DataConfig& config, const Network& model, std::int64_t batch_size);

// What several workers have counted. Nothing if one was stopped: the rest is of a part of the samples. Error(failed) if
// every image is broken.
Evaluation added_up(std::span<const std::optional<Accuracy>> workers);

}  // namespace trireme::train
