// Records of a study: a run's record plus "study", which identifies the run. Made and found by Sweep and TuneTrials.
#pragma once

#include <filesystem>
#include <optional>

#include "trireme/lab/study/study_cells.hpp"
#include "trireme/lab/study/study_folder.hpp"
#include "trireme/lab/study/trial.hpp"

namespace trireme::lab {

// "study" of a run before it is made: name, cell, repeat and framework.
record::StudyRun identity_of(const StudyPlan& plan, const StudyCell& cell, int repeat);

// Adds "study", with the run's duration, and the machine if missing: another framework, or a run that failed early.
void complete_record(TrialResult& trial, record::StudyRun study);

// Runs a trial into a study's folder: log, record with `study` (unless interrupted), and journal entries.
TrialResult run_into(const StudyFolder& folder, const RunName& name, TrialRequest request, record::StudyRun study,
                     std::stop_token stop);

// The complete record of a run, in a folder that need not exist; nothing if it has yet to run. Its "study" must contain
// `study`, else Error(bad_input): the file is not ours to replace.
std::optional<record::RunRecord> find_record(const std::filesystem::path& folder, const RunName& run,
                                             const record::StudyRun& study);

}  // namespace trireme::lab
