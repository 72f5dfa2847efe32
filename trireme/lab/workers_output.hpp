// What is printed about workers and servers that train together. Used by benchmark_output.hpp.
#pragma once

#include <string>

#include "trireme/lab/job_figures.hpp"

namespace trireme::lab {

std::string workers_text(int workers);                               // "2 workers"
std::string members_text(const std::vector<comm::Member>& members);  // "4: 2 on alpha, 2 on beta"
std::string servers_text(const BenchmarkSetup& setup);
std::string update_text(const BenchmarkSetup& setup);

// Where a step goes on every rank, how fast gradients travel, and who keeps the others waiting.
std::string workers_table(const JobFigures& figures, const std::vector<RankReport>& ranks);
// What each server holds and what goes through it.
std::string servers_table(const BenchmarkSetup& setup, const std::vector<ServerReport>& servers);
std::string baseline_text(const BenchmarkSetup& setup, const BenchmarkResult& result, const JobFigures& figures);

}  // namespace trireme::lab
