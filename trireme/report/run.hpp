// One measured run, read from a record (trireme.run/1) of any origin. Made by record_set.hpp, grouped by studies.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "trireme/record/run_record.hpp"

namespace trireme::report {

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

}  // namespace trireme::report
