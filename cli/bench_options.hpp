// The options of `trireme bench` on its subcommand. Names are those of tf_cnn_benchmarks where it has one.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "cli/cluster_options.hpp"
#include "cli/commands.hpp"
#include "trireme/lab/benchmark_config.hpp"

namespace trireme::cli {

struct BenchArguments {
  lab::BenchmarkOptions options;
  ClusterArguments cluster;
  std::string record;   // path; "-": stdout; empty: none
  std::string trace;    // path; empty: none
  std::string refused;  // an option of a later build that was given, with the reason
};

// How kernels are chosen: of every command that compiles a network.
void add_tuning_options(CLI::App& app, train::StepOptions& options);
// What is computed again to save memory: likewise.
CLI::Option* add_recompute_option(CLI::App& app, train::StepOptions& options);
// What a step is: of every command that trains.
void add_training_step_options(CLI::App& app, train::StepOptions& options);
// What evaluating a checkpoint takes: data, device and threads.
void add_evaluation_options(CLI::App& app, train::StepOptions& options);
// --trace and --trace-steps.
void add_trace_options(CLI::App& app, std::string& path, train::StepOptions& options);
void add_bench_options(CLI::App& app, BenchArguments& arguments);

// Of a launch of workers that train together.
LaunchNeeds training_needs(const ClusterArguments& arguments, const train::DistributionConfig& distribution);

}  // namespace trireme::cli
