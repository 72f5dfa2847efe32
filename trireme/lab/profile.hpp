// Where the time of a step goes, instruction by instruction: made from a profiled Executable, printed by `bench
// --profile`.
#pragma once

#include <string>
#include <vector>

#include "trireme/perf/peak.hpp"
#include "trireme/runtime/executable.hpp"

namespace trireme::lab {

struct ProfileRow {
  std::string name = {}, operation = {}, implementation = {};
  int instructions = 1;
  double seconds = 0;  // per step
  double flops = 0;    // per step
  double bytes = 0;    // per step, each tensor read or written once
};

struct StepProfile {
  std::vector<ProfileRow> instructions;  // most time first
  std::vector<ProfileRow> operations;    // added up by operation, most time first
  int inter_threads = 1;                 // with more than one, instructions overlap
  double step_seconds = 0;
  double tracked_seconds = 0;  // in instructions, added up; the rest of the step is untracked if none overlap
  double update_seconds = 0;   // in instructions that write variables
};

// step_seconds: the mean of the steps that were profiled.
// groups: of cores that share a batch; the profile is of one of them, which does a share of the updates.
StepProfile make_profile(const Program& program, const Executable::Profile& profile, double step_seconds,
                         int inter_threads = 1, int groups = 1);

// Two tables: the instructions that take most time, and the totals by operation with what no instruction accounts for.
// Shares are of the step; where instructions overlap, of their summed time, and the title says so.
std::string to_text(const StepProfile& profile, const perf::Peak& peak, std::int64_t rows);

}  // namespace trireme::lab
