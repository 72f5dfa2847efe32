// What a benchmark is to do: a step, and how it is timed. BenchmarkOptions is what a user writes; resolve() checks it
// and gives the BenchmarkConfig that Benchmark runs and the record keeps.
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
  std::vector<std::string> given;  // options that the user has set, by name: for the record
};

struct BenchmarkConfig : train::StepConfig {
  bool batch_size_chosen = false;  // neither a size nor a number of steps was asked for: one that is quick here
  std::int64_t num_batches = 100;
  std::int64_t num_warmup_batches = 10;
  std::int64_t repeats = 1;
  std::int64_t display_every = 10;
  double max_seconds = 0;    // of warm-up and timed steps together; 0: no limit
  bool baseline = false;     // measure one worker alone, and workers that exchange nothing, in the same run
  bool io_overhead = false;  // measure steps whose batch stays in place too
  bool profile = false;
  std::int64_t profile_rows = 30;
  std::vector<std::string> given;
};

// What of it can be known before the processes of a launch are there: Error(bad_input) as resolve().
train::DistributionConfig check_before_launch(const BenchmarkOptions& options, const comm::JobSize& job);

// Throws Error(bad_input) that names the option, what was given and what is legal.
BenchmarkConfig resolve(const BenchmarkOptions& options, const comm::JobSize& job = {});

// Under the names of the options.
Json to_json(const BenchmarkConfig& config);

}  // namespace trireme::lab
