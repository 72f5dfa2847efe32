// The validation part of a data set, or a worker's share of it, and what workers have counted on it. Used by Trainer
// and CheckpointEvaluation.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "trireme/data/pipeline.hpp"
#include "trireme/models/model.hpp"
#include "trireme/train/data_config.hpp"
#include "trireme/train/evaluator.hpp"

namespace trireme::train {

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
