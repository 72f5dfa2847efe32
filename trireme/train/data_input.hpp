// The images of a data set on their way into a worker's steps: checks that they suit the network, and has batches
// ready. Made by Worker.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trireme/comm/communicator.hpp"
#include "trireme/data/pipeline.hpp"
#include "trireme/train/step_config.hpp"
#include "trireme/train/trained_on.hpp"

namespace trireme::train {

// On stderr: what is wrong with a record that does not end the run.
void say_passed_over(const std::string& problem);

// Collective. Workers take their shares of one sequence: Error(bad_input) where it is not the same for all.
void check_same_data(comm::Communicator& workers, const std::string& folder, std::int64_t samples, std::uint64_t hash);

// Collective: how many different records there are among those of all workers.
std::int64_t count_different(comm::Communicator& workers, const std::vector<std::int64_t>& own);

class DataInput {
 public:
  // Opens the data set and compares it with what other workers have. Collective. Error(bad_input) where that is
  // something else.
  DataInput(const StepConfig& config, comm::Communicator& workers);

  // Error(bad_input) where it has more classes than the network, or fewer images than a step takes.
  void check_suits(const StepConfig& config, bool goes_on) const;

  // Threads begin to make batches, on these processors, where they are given, from this place of the sequence on. They
  // leave spans where there is a recorder.
  void start(const std::vector<int>& processors, std::int64_t first = 0, perf::Recorder* recorder = nullptr);
  // Waits for the next batch; valid until the next call.
  const data::Batch& next() { return pipeline_->next(); }

  std::int64_t samples() const { return dataset_->size(); }
  // That the network is to have: as many as the data set, if nobody has said another number.
  std::int64_t classes() const { return classes_; }
  const data::PreprocessingOptions& preprocessing() const { return config_.preprocessing; }  // complete
  TrainedOn trained_on() const { return train::trained_on(*dataset_, images_, config_.preprocessing); }
  const data::DatasetInfo& info() const { return dataset_->info(); }
  std::string describe() const;                // what it is
  std::string describe_preprocessing() const;  // and what is done to it
  // Collective: different ones that were passed over, by whichever workers.
  std::int64_t count_bad_records(comm::Communicator& workers) const;

 private:
  DataConfig config_;
  std::shared_ptr<const data::Dataset> dataset_;
  data::Glimpse images_;
  std::int64_t classes_ = 0;
  data::PipelineOptions options_;
  std::unique_ptr<data::Pipeline> pipeline_;
};

}  // namespace trireme::train
