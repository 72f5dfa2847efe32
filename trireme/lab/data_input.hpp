// The images of a data set on their way into a benchmark's steps: checks that they suit the network, and has batches
// ready. Made by Benchmark, one per worker.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trireme/comm/communicator.hpp"
#include "trireme/data/pipeline.hpp"
#include "trireme/lab/benchmark_config.hpp"

namespace trireme::lab {

class DataInput {
 public:
  // Opens the data set and compares it with the network and with what other workers have. Collective. Error(bad_input)
  // where they do not fit.
  DataInput(const BenchmarkConfig& config, comm::Communicator& workers);

  // Threads begin to make batches, on these processors, where they are given, from this place of the sequence on. They
  // leave spans where there is a recorder.
  void start(const std::vector<int>& processors, std::int64_t first = 0, perf::Recorder* recorder = nullptr);
  // Waits for the next batch; valid until the next call.
  const data::Batch& next() { return pipeline_->next(); }

  std::int64_t samples() const { return dataset_->size(); }
  const data::DatasetInfo& info() const { return dataset_->info(); }
  std::string describe() const;                // what it is
  std::string describe_preprocessing() const;  // and what is done to it
  // Collective: different ones that were passed over, by whichever workers.
  std::int64_t count_bad_records(comm::Communicator& workers) const;

 private:
  void check_classes(std::int64_t classes) const;
  void check_same(comm::Communicator& workers) const;

  DataConfig config_;
  std::shared_ptr<const data::Dataset> dataset_;
  data::PipelineOptions options_;
  std::unique_ptr<data::Pipeline> pipeline_;
};

}  // namespace trireme::lab
