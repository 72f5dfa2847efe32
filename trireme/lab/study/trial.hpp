// Runs one configuration as a separate process and collects its measurements, for `sweep`, `tune` and `compare`. With a
// process per run, no run inherits threads, memory or timings, and none can crash the study.
// The records of a study's runs have "study", which identifies the run.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "trireme/base/error.hpp"
#include "trireme/lab/study/study_cells.hpp"
#include "trireme/lab/study/study_folder.hpp"
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

// "study" of a run before it is made: name, cell, repeat and framework.
record::StudyRun identity_of(const StudyPlan& plan, const StudyCell& cell, int repeat);

// Runs a trial into a study's folder: log, record with `study` (unless interrupted), and journal entries.
TrialResult run_into(const StudyFolder& folder, const RunName& name, TrialRequest request, record::StudyRun study,
                     std::stop_token stop);

// The complete record of a run, in a folder that need not exist; nothing if it has yet to run. Its "study" must contain
// `study`, else Error(bad_input): the file is not ours to replace.
std::optional<record::RunRecord> find_record(const std::filesystem::path& folder, const RunName& run,
                                             const record::StudyRun& study);

}  // namespace trireme::lab
