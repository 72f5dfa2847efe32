// The run record of a benchmark: started before the run, so that a failure has one too, and filled from what was
// measured.
#pragma once

#include "trireme/lab/benchmark.hpp"
#include "trireme/report/run_record.hpp"

namespace trireme::lab {

// Command, time, build, machine and configuration.
report::RunRecord start_record(const BenchmarkConfig& config);

// The configuration as it came out, samples and results.
void fill_record(report::RunRecord& record, const Benchmark& benchmark);

}  // namespace trireme::lab
