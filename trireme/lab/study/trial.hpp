// Runs one configuration as a separate process and collects its measurements, for `sweep`, `tune` and `compare`. With a
// process per run, no run inherits threads, memory or timings, and none can crash the study.
#pragma once

#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "trireme/base/error.hpp"
#include "trireme/report/run_record.hpp"

namespace trireme::lab {

struct TrialRequest {
  // Prints its record (JSON) on stdout, in a launch the first worker's, and everything else on stderr: trial_command().
  std::vector<std::string> command;
  std::string scratch_folder = {};  // for this trial only: emptied before, removed afterwards
  std::string log_file = {};        // receives its stderr
  double limit_seconds = 1800;
  double grace_seconds = 3;                                // from asking it to end to killing it
  std::function<void(double seconds)> while_running = {};  // called about twice a second
};

struct TrialResult {
  enum class Ending : std::uint8_t { measured, failed, interrupted };
  Ending ending = Ending::measured;
  Json record;             // after a failure with `error`, made here if none was printed; null if interrupted
  double seconds = 0;      // wall time
  double load_before = 0;  // cores kept busy by other programs before it
  ErrorKind error = ErrorKind::failed;  // kind of failure; other than failed: nothing was run
};

bool has_failed(const Json& record);           // these two read any record
double images_per_second(const Json& record);  // 0: nothing was measured

// `trireme` as the program, then `words` (see command_words()), then the options that make it print its record.
std::vector<std::string> trial_command(const std::string& program, std::vector<std::string> words);

// Runs it in its own process group and waits. After the limit or a stop request asks it to end, then kills it; no
// process of it outlives this call or this process. A failed trial is a result; Error(failed): this process failed.
TrialResult run_trial(const TrialRequest& request, std::stop_token stop);

}  // namespace trireme::lab
