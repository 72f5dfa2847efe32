// One configuration run as a process of its own and what it has measured: what `sweep`, `tune` and `compare` are made
// of. A process per run, so that no run inherits threads, memory or timings of another, and none can take the study
// with it.
#pragma once

#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "trireme/base/error.hpp"
#include "trireme/report/run_record.hpp"

namespace trireme::lab {

struct TrialRequest {
  // The program and its arguments. It prints its record (JSON) on standard output and everything else on stderr; of a
  // `trireme launch` the first worker does. See trial_command().
  std::vector<std::string> command;
  std::string scratch_folder = {};  // for the trial alone: emptied before, removed afterwards
  std::string log_file = {};        // gets what it says on stderr
  double limit_seconds = 1800;
  double grace_seconds = 3;                                // from asking it to end to making it
  std::function<void(double seconds)> while_running = {};  // about twice a second
};

struct TrialResult {
  enum class Ending : std::uint8_t { measured, failed, interrupted };
  Ending ending = Ending::measured;
  // What it has printed; where it failed with `error`, and made here where it printed none. Null when interrupted.
  Json record;
  double seconds = 0;                   // from its start to its end
  double load_before = 0;               // cores that other programs kept busy before it
  ErrorKind error = ErrorKind::failed;  // of a failure; another kind: nothing was run
};

// What a record says, whoever wrote it.
bool has_failed(const Json& record);
double images_per_second(const Json& record);  // 0: nothing was measured

// `trireme` as the program, the words after it (command_words()), and what makes it print its record.
std::vector<std::string> trial_command(const std::string& program, std::vector<std::string> words);

// Runs it in a process group of its own and waits. After the limit, or when a stop is requested, it is asked to end
// and then made to; nothing of it is left when this returns, and nothing survives this process either. A failure of
// the trial is a result; Error(failed) is for this process's own: no room for the log, no process to be had.
TrialResult run_trial(const TrialRequest& request, std::stop_token stop);

}  // namespace trireme::lab
