// The configuration of a benchmark: a step and how it is timed. resolve() checks the user's BenchmarkOptions and
// returns the BenchmarkConfig that Benchmark runs and the record keeps.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trireme/train/step_config.hpp"

namespace trireme::lab {

// num_batches and repeats have values.
struct BenchmarkConfig : train::StepConfig, TimingOptions {
  BenchmarkConfig() {
    num_batches = 100;
    repeats = 1;
  }
  bool batch_size_chosen = false;  // neither size nor number of steps was given: a size that is quick here
  std::vector<std::string> given = {};
};

// The checks that are possible before the processes of a launch exist: Error(bad_input) as in resolve().
train::DistributionConfig check_before_launch(const BenchmarkOptions& options, const comm::JobSize& job);

// Error(bad_input) names the option, the value given and what is legal.
BenchmarkConfig resolve(const BenchmarkOptions& options, const comm::JobSize& job = {});

Json to_json(const BenchmarkConfig& config);  // keys are the option names

}  // namespace trireme::lab
