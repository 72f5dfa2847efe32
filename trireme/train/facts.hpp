// This build and this machine, as records have them.
#pragma once

#include "trireme/record/run_record.hpp"

namespace trireme::train {

Json build_facts();  // version, git, compiler, build_type, libraries {name: version} of this build and its backends
record::Machine this_machine();
record::Machine this_machine(double load);

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
