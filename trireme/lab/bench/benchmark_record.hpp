// The run record of a benchmark, started before the run so that a failure is recorded too.
#pragma once

#include "trireme/lab/bench/benchmark.hpp"
#include "trireme/report/run_record.hpp"

namespace trireme::lab {

report::RunRecord start_record(const BenchmarkConfig& config);  // command, time, build, machine and configuration

void fill_record(report::RunRecord& record, const Benchmark& benchmark);  // final configuration and results

}  // namespace trireme::lab
