// The files that a report is made of: run records, records of training and of the network, and the plans of studies.
// `trireme report` loads them; everything that follows sees what could be read, and warnings about what could not.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "trireme/report/run.hpp"

namespace trireme::report {

inline constexpr const char* kPlanSchema = "trireme.plan/1";  // of a study's plan.json

// What a plan (trireme.plan/1) says about its study.
struct PlanSummary {
  std::string name, title, question, source, figure;
  std::vector<std::string> varied;  // options in their order
};

struct FileRecord {
  std::string file;
  Json json;
};

struct RecordSet {
  std::vector<Run> runs;
  std::vector<FileRecord> trainings;         // trireme.train/1
  std::vector<FileRecord> networks;          // trireme.net/1
  std::map<std::string, PlanSummary> plans;  // by the name of the study
  std::vector<std::string> warnings;         // files that were passed over, and why

  bool empty() const { return runs.empty() && trainings.empty() && networks.empty(); }
};

// Folders are searched for .json files, also in folders below. What in a folder is no record is passed over, with a
// warning; a file that was named must be one. A run counts once, however many paths lead to it or copies there are.
// Error(bad_input) where nothing is left.
RecordSet load_records(const std::vector<std::string>& paths);

}  // namespace trireme::report
