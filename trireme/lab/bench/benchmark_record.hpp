// The run record of a benchmark, started before the run so that a failure is recorded too.
#pragma once

#include "trireme/lab/bench/benchmark.hpp"
#include "trireme/record/run_record.hpp"

namespace trireme::lab {

record::RunRecord start_record(const BenchmarkConfig& config);  // command, time, build, machine and configuration

void fill_record(record::RunRecord& record, const Benchmark& benchmark);  // final configuration and results

}  // namespace trireme::lab
