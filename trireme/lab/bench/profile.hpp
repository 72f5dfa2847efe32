// Time of a step by instruction: made from a profiled Executable, printed by `bench --profile`.
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
  std::vector<ProfileRow> instructions;  // longest first
  std::vector<ProfileRow> operations;    // summed by operation, longest first
  int inter_threads = 1;                 // if more than one, instructions overlap
  double step_seconds = 0;
  double tracked_seconds = 0;  // sum over instructions; the rest of the step is untracked if none overlap
  double update_seconds = 0;   // in instructions that write variables
};

// step_seconds: mean of the profiled steps. groups: core groups; the profile covers one, with its share of updates.
StepProfile make_profile(const Program& program, const Executable::Profile& profile, double step_seconds,
                         int inter_threads = 1, int groups = 1);

// Two tables: the slowest instructions, and totals by operation with the untracked rest. Shares are of the step or, if
// instructions overlap, of their summed time; the title says which.
std::string to_text(const StepProfile& profile, const perf::Peak& peak, std::int64_t rows);

}  // namespace trireme::lab
