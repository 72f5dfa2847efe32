// Records of a study: what a run has printed, with "study" added, which says of which run it is. What a study has left
// is known again by that. Made and found by Sweep and TuneTrials.
#pragma once

#include <filesystem>
#include <optional>

#include "trireme/lab/study_cells.hpp"
#include "trireme/lab/study_folder.hpp"
#include "trireme/lab/trial.hpp"

namespace trireme::lab {

// What "study" says about a run before it is made: name, cell, repeat and framework.
Json identity_of(const StudyPlan& plan, const StudyCell& cell, int repeat);

// Adds "study", with the seconds that the run took, to its record and, where that does not name one, the machine: what
// is not Trireme, and what failed before it could look, has run on this one all the same.
void complete_record(TrialResult& trial, Json study);

// Runs a trial into the folder of a study: its log, its record with `study`, and in the journal when it began and how
// it ended. What is interrupted leaves no record.
TrialResult run_into(const StudyFolder& folder, const RunName& name, TrialRequest request, Json study,
                     std::stop_token stop);

// The record of a run, whole, of a folder that need not exist; nothing where it is yet to be made. `study` is what its
// "study" has to say at least: Error(bad_input) where it says something else, as the file is not ours to replace.
std::optional<Json> find_record(const std::filesystem::path& folder, const RunName& run, const Json& study);

}  // namespace trireme::lab
