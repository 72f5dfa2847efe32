// This build, this machine and a worker's pipeline, as records have them.
#pragma once

#include "trireme/record/run_record.hpp"

namespace trireme::train {

struct StepConfig;
struct WorkerSetup;

Json build_facts();  // version, git, compiler, build_type, libraries {name: version} of this build and its backends
record::Machine this_machine();
record::Machine this_machine(double load);

std::optional<record::Pipeline> pipeline_of(const WorkerSetup& setup,
                                            const StepConfig& config);  // nothing: it has none
std::vector<record::ParallelPlan> plans_of(const WorkerSetup& setup, const StepConfig& config);

// A record of any kind that begins now: its command, time, build and machine.
template <typename Record>
Record begin_record() {
  Record record;
  record.command = record::command_line();
  record.started = record::rfc3339(std::chrono::system_clock::now());
  record.build = build_facts();
  record.machine = this_machine();
  return record;
}

}  // namespace trireme::train
