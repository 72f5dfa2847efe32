// Texts of a benchmark: banner, step lines, totals.
#pragma once

#include <string>

#include "trireme/lab/bench/job_figures.hpp"

namespace trireme::cli {

std::string introduction(const lab::BenchmarkConfig& config);  // what is about to be measured, and for how long
std::string banner(const lab::BenchmarkSetup& setup);
std::string banner(const lab::BenchmarkSetup& setup, const std::string& steps);  // other words for the steps
std::string step_line(const lab::StepEvent& event, std::int64_t batch_size);
std::string totals(const lab::BenchmarkSetup& setup, const lab::BenchmarkResult& result);
// Share of the run that is done, 0 to 1: by steps, or by time if that ends it earlier.
double progress(const lab::BenchmarkConfig& config, double elapsed_seconds, std::int64_t steps_done);

// For workers and servers that train together.
std::string workers_text(int workers);                               // "2 workers"
std::string members_text(const std::vector<comm::Member>& members);  // "4: 2 on alpha, 2 on beta"
std::string servers_text(const lab::BenchmarkSetup& setup);
std::string update_text(const lab::BenchmarkSetup& setup);

// Time breakdown of a step per rank, gradient bandwidth or bubbles of stages, and which rank keeps the others waiting.
std::string workers_table(const lab::JobFigures& figures, const std::vector<lab::RankReport>& ranks);
// What each server holds and its traffic.
std::string servers_table(const lab::BenchmarkSetup& setup, const std::vector<record::ServerLoad>& servers);
std::string baseline_text(const lab::BenchmarkSetup& setup, const lab::BenchmarkResult& result,
                          const lab::JobFigures& figures);

}  // namespace trireme::cli
