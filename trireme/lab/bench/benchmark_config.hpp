// The configuration of a benchmark: a step and how it is timed. resolve() checks the user's BenchmarkOptions and
// returns the BenchmarkConfig that Benchmark runs and the record keeps.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trireme/train/step_config.hpp"

namespace trireme::lab {

struct BenchmarkOptions : train::StepOptions {
  std::optional<std::int64_t> num_batches;
  std::int64_t num_warmup_batches = 10;
  std::optional<std::int64_t> repeats;
  std::int64_t display_every = 10;
  std::optional<double> max_seconds;
  bool baseline = false;
  bool io_overhead = false;
  bool profile = false;
  std::int64_t profile_rows = 30;
  std::vector<std::string> given = {};  // options that the user has set, by name: for the record
};

struct BenchmarkConfig : train::StepConfig {
  bool batch_size_chosen = false;  // neither size nor number of steps was given: a size that is quick here
  std::int64_t num_batches = 100;
  std::int64_t num_warmup_batches = 10;
  std::int64_t repeats = 1;
  std::int64_t display_every = 10;
  double max_seconds = 0;    // for warm-up and timed steps together; 0: no limit
  bool baseline = false;     // also measure one worker alone, and workers that exchange nothing
  bool io_overhead = false;  // also measure steps with a fixed batch
  bool profile = false;
  std::int64_t profile_rows = 30;
  std::vector<std::string> given = {};
};

// The checks that are possible before the processes of a launch exist: Error(bad_input) as in resolve().
train::DistributionConfig check_before_launch(const BenchmarkOptions& options, const comm::JobSize& job);

// Error(bad_input) names the option, the value given and what is legal.
BenchmarkConfig resolve(const BenchmarkOptions& options, const comm::JobSize& job = {});

Json to_json(const BenchmarkConfig& config);  // keys are the option names

}  // namespace trireme::lab
