// The input of a report: run, training and network records, and study plans. Loaded by `trireme report`; the rest of
// the report sees what could be read, and warnings about what could not.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "trireme/record/network_record.hpp"
#include "trireme/record/training_record.hpp"
#include "trireme/report/run.hpp"

namespace trireme::report {

inline constexpr const char* kPlanSchema = "trireme.plan/1";  // of a study's plan.json

// What a plan (trireme.plan/1) says about its study.
struct PlanSummary {
  std::string name, title, question, source, figure;
  std::vector<std::string> varied;  // options in order
};

struct Training : record::TrainingRecord {
  std::string file;
};

struct Network : record::NetworkRecord {
  std::string file;
};

struct RecordSet {
  std::vector<Run> runs;
  std::vector<Training> trainings;
  std::vector<Network> networks;
  std::map<std::string, PlanSummary> plans;  // by study name
  std::vector<std::string> warnings;         // skipped files, with reasons

  bool empty() const { return runs.empty() && trainings.empty() && networks.empty(); }
};

// Searches folders recursively for .json files. Non-records in folders are skipped with a warning; a named file must be
// a record. A run counts once, however many paths or copies there are. Error(bad_input) if nothing is left.
RecordSet load_records(const std::vector<std::string>& paths);

}  // namespace trireme::report
