// The machine and the build as JSON with the keys of run records. Used by records and `doctor --json`.
#pragma once

#include "trireme/perf/machine.hpp"
#include "trireme/report/run_record.hpp"

namespace trireme::report {

// host, cpu, cores, memory, gpu, load, warnings and more; memory and caches in bytes.
Json to_json(const perf::Machine& machine);

Json build_json();  // version, git, compiler, build_type, libraries {name: version} of this build and its backends

}  // namespace trireme::report
