// Feeds the images of a data set to a worker's steps: checks that they suit the network and prepares batches ahead.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "trireme/comm/communicator.hpp"
#include "trireme/data/pipeline.hpp"
#include "trireme/train/sample_ledger.hpp"
#include "trireme/train/step_config.hpp"
#include "trireme/train/trained_on.hpp"

namespace trireme::train {

void report_skipped(const std::string& problem);  // a bad record that does not end the run, on stderr

// Collective. Workers take shares of one sequence: Error(bad_input) if it is not the same for all.
void check_same_data(comm::Communicator& workers, const std::string& folder, std::int64_t samples, std::uint64_t hash);

// Collective: the number of distinct records over all workers.
std::int64_t count_different(comm::Communicator& workers, const std::vector<std::int64_t>& own);

class DataInput {
 public:
  // Collective. Opens the data set and compares it with the other workers'. Error(bad_input) if they differ.
  DataInput(const StepConfig& config, comm::Communicator& workers);

  // Error(bad_input) if it has more classes than the network, or fewer images than a step needs.
  void check_suits(const StepConfig& config, bool goes_on) const;

  struct Start {
    std::vector<int> processors = {};    // to be pinned to; empty: any
    perf::Recorder* recorder = nullptr;  // gets spans; null: no trace
    bool needs_images = true;            // false: the last stage of a pipeline needs labels only
  };
  // Starts making the configuration's batches of unused samples.
  void start(const StepConfig& config, const Start& start, const SampleLedger& ledger = {});
  // Goes on as this rank of so many, with what nobody has used.
  void restart(int rank, int ranks, const SampleLedger& ledger);
  // Waits for the next batch; valid until the next call.
  const data::Batch& next() { return pipeline_->next(); }
  bool is_ready() const { return pipeline_ && pipeline_->is_ready(); }  // next() would not wait

  std::int64_t samples() const { return dataset_->size(); }
  // For the network: as many as the data set has unless the user said otherwise.
  std::int64_t classes() const { return classes_; }
  const data::PreprocessingOptions& preprocessing() const { return config_.preprocessing; }  // complete
  TrainedOn trained_on() const { return train::trained_on(*dataset_, images_, config_.preprocessing); }
  const data::DatasetInfo& info() const { return dataset_->info(); }
  std::string describe() const;
  std::string describe_preprocessing() const;
  std::int64_t count_bad_records(comm::Communicator& workers) const;  // collective; distinct, of all workers

 private:
  DataConfig config_;
  std::shared_ptr<const data::Dataset> dataset_;
  data::Glimpse images_;
  std::int64_t classes_ = 0;
  data::PipelineOptions options_;
  std::unique_ptr<data::Pipeline> pipeline_;
  std::set<std::int64_t> bad_before_;  // of earlier pipelines
};

}  // namespace trireme::train
