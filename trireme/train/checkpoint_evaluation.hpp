// Accuracy of a checkpoint's network on the validation images, shared by all workers. Made by `trireme eval`.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "trireme/train/checkpoint.hpp"
#include "trireme/train/evaluator.hpp"
#include "trireme/train/step_config.hpp"

namespace trireme::train {

struct EvaluationOptions {
  std::string checkpoint;  // a file, or a folder: its newest one
  StepOptions step;        // data, batch size, device and threads
  bool average = false;    // use averaged variables if the checkpoint has them
  bool allow_other_data = false;
};

class CheckpointEvaluation {
 public:
  // Collective. Error(bad_input) for an invalid checkpoint or option, or a network trained on another kind of images.
  CheckpointEvaluation(const EvaluationOptions& options, comm::Communicator& workers);

  // Collective. The result over all workers; nothing if one of them was asked to stop.
  std::optional<Accuracy> run(const std::stop_token& stop, const Evaluator::OnProgress& on_progress);

  const CheckpointFile& checkpoint() const { return *checkpoint_; }
  const data::Dataset& dataset() const { return *data_.dataset; }
  std::int64_t samples() const;  // in this worker's share
  std::string preprocessing() const { return data::describe(data_.pipeline.preprocessing); }
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  void check_data() const;
  void check_memory();
  void make_evaluator();

  comm::Communicator& workers_;
  bool allow_other_data_;
  std::unique_ptr<CheckpointFile> checkpoint_;
  StepConfig config_;
  std::vector<std::string> warnings_;
  EvaluationData data_;
  std::shared_ptr<Backend> backend_;
  std::unique_ptr<Evaluator> evaluator_;
};

}  // namespace trireme::train
