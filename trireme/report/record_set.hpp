// The input of a report: run, training and network records, and study plans. Loaded by `trireme report`; the rest of
// the report sees what could be read, and warnings about what could not.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "trireme/record/network_record.hpp"
#include "trireme/record/run_record.hpp"
#include "trireme/record/training_record.hpp"

namespace trireme::report {

// One measured run, read from a record (trireme.run/1) of any origin. Grouped by studies.
struct Run : record::RunRecord {
  std::string file;
  std::string side;                   // of a comparison of two sets of records; empty: there is no such comparison
  Json options;                       // every option as resolved, by the name that the command line has
  Json cell;                          // options that its study varies, by name; null: it has no study
  std::string study_name;             // empty: measured by itself
  std::string figure_kind;            // the figure that the study asks for; empty: none
  std::string framework = "trireme";  // with its version, if there are several
  std::string repeat_command;         // shell line that repeats it
  std::string machine_line;           // identifies comparable machines: host, CPU, cores
  std::string gpu;                    // used by the run; empty: the CPU
  std::string hardware;               // CPU and cores
  std::string build_line;             // version and commit
  std::vector<std::string> hosts;     // of its tasks, each once, in order; empty: unknown

  bool is_own() const { return framework == "trireme"; }
  bool is_measured() const { return !error && !interrupted; }
  std::vector<double> speed_per_repeat() const;  // global images per second, without failed repeats
  double option_or(const char* name, double otherwise) const;
  std::string option_text(const char* name) const;  // empty: not set
  double effective_batch() const;                   // images per step of all workers; 0: unknown
};

Run read_run(const Json& record, const std::string& file);  // Error(bad_input) names the file if it is no such record

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
