// Runs one configuration as a separate process and collects its measurements, for `sweep`, `tune` and `compare`. With a
// process per run, no run inherits threads, memory or timings, and none can crash the study.
#pragma once

#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "trireme/base/error.hpp"
#include "trireme/record/run_record.hpp"

namespace trireme::lab {

struct TrialRequest {
  std::vector<std::string> command;  // takes --record FILE, which is added
  std::string scratch_folder = {};   // for this trial only: emptied before, removed afterwards
  std::string log_file = {};         // receives its output
  double limit_seconds = 1800;
  double grace_seconds = 3;                                // from asking it to end to killing it
  std::function<void(double seconds)> while_running = {};  // called about twice a second
};

struct TrialResult {
  enum class Ending : std::uint8_t { measured, failed, interrupted };
  Ending ending = Ending::measured;
  record::RunRecord record;  // after a failure with `error`, made here if none was written; empty if interrupted
  double seconds = 0;        // wall time
  double load_before = 0;    // cores kept busy by other programs before it
  ErrorKind error = ErrorKind::failed;  // kind of failure; other than failed: nothing was run
};

// Runs it in its own process group and waits. After the limit or a stop request asks it to end, then kills it; no
// process of it outlives this call or this process. A failed trial is a result; Error(failed): this process failed.
TrialResult run_trial(const TrialRequest& request, std::stop_token stop);

}  // namespace trireme::lab
