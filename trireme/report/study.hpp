// Runs grouped by what varies between them: a study has cells, a cell has runs with the same configuration. Made from a
// RecordSet; the basis of figures and findings.
#pragma once

#include <string>
#include <vector>

#include "trireme/report/record_set.hpp"

namespace trireme::report {

struct Dimension {
  std::string option;        // command-line name; also "framework", "hosts", "machine", "build", "side"
  std::vector<Json> values;  // numbers sorted, others in order of appearance

  bool is_numeric() const;
};

struct Cell {
  Json settings;      // {option: value} for the study's dimensions; other frameworks lack options they do not have
  std::string label;  // "2 workers, 1 thread, batch 32"
  std::vector<Run> runs;
  std::vector<double> speeds;  // global images per second: one per run or, for a single run, one per repeat

  // For tests: one per run. Repeats share a process, and so everything that varies between starts.
  std::vector<double> run_speeds() const;
  const Run& example() const { return runs.front(); }
  bool is_one_run() const { return runs.size() == 1 && speeds.size() > 1; }
  double median_speed() const;
};

struct Study {
  std::string id;  // for names of figures and files
  std::string title, question, source;
  std::string facet = {};  // of a part of a study: its distinction, "2 servers"
  std::string kind;        // figure it asks for; empty: any suitable
  std::vector<Dimension> dimensions;
  std::vector<Cell> cells;  // each with at least one run
  std::vector<Run> failed;  // with `error`, or interrupted
  std::vector<std::string> warnings;

  const Dimension* dimension(const std::string& option) const;
  bool varies(const std::string& option) const { return dimension(option) != nullptr; }
  bool varies_in_numbers(const std::string& option) const { return varies(option) && dimension(option)->is_numeric(); }
  std::vector<const Dimension*> numeric_dimensions() const;
  const Cell* find(const Json& settings) const;  // null: no such run
};

// One study per name, and one for runs without a name. A cell never mixes machines, builds or other settings:
// differences become a dimension, with a warning. Versions of another framework are frameworks ("pytorch 2.1"). Between
// two sides (Run::side), machine and build are compared, and the caller handles options that differ only between sides.
std::vector<Study> make_studies(const RecordSet& records);

bool are_comparable(const Cell& first, const Cell& second);  // same machine and build

std::string setting_text(const std::string& option, const Json& value);  // "2 workers", "batch 32", "all_reduce"
std::string settings_text(const Json& settings);
std::string option_title(const std::string& option);  // for axes: "batch per worker"
std::string slug(const std::string& text);            // letters, digits and dashes

// By command-line name; also "framework", "side", "machine", "hosts", "build". Null: unknown or not set.
Json setting_of(const Run& run, const std::string& option);

// Whether it makes another configuration: not measuring time, output paths, or what a run chose automatically.
bool is_setting(const Run& run, const std::string& option);

}  // namespace trireme::report
