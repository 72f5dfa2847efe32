// The options of `trireme bench`. Names follow tf_cnn_benchmarks if it has the option.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "cli/cluster_options.hpp"
#include "cli/commands.hpp"
#include "trireme/lab/bench/benchmark_config.hpp"

namespace trireme::cli {

struct BenchArguments {
  lab::BenchmarkOptions options;
  ClusterOptions cluster;
  train::OutputOptions files;
  std::string refused;  // an option given that only a later build supports, with the reason
};

void add_evaluation_options(CLI::App& app, train::StepOptions& options);  // data, device and threads
void add_bench_options(CLI::App& app, BenchArguments& arguments);

// What a launch of workers that train together needs.
LaunchNeeds training_needs(const ClusterOptions& options, const train::DistributionConfig& distribution,
                           const std::string& record);

}  // namespace trireme::cli
