// The machine and the build as JSON, under the names that run records have. Used by records and by `doctor --json`.
#pragma once

#include "trireme/perf/machine.hpp"
#include "trireme/report/run_record.hpp"

namespace trireme::report {

// host, cpu, cores, memory, gpu, load, warnings and more; memory and caches in bytes.
Json to_json(const perf::Machine& machine);

// version, git, compiler, build_type, libraries {name: version}: those of every build and those of its backends.
Json build_json();

}  // namespace trireme::report
