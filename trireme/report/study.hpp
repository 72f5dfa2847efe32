// Runs that belong together, grouped by what varies between them: a study has cells, a cell has the runs that were
// configured alike. Made from a RecordSet; figures and findings are made of it.
#pragma once

#include <string>
#include <vector>

#include "trireme/report/record_set.hpp"

namespace trireme::report {

struct Dimension {
  std::string option;        // as the command line has it; also "framework", "hosts", "machine", "build", "side"
  std::vector<Json> values;  // numbers in order, others as they came

  bool is_numeric() const;
};

struct Cell {
  Json settings;      // {option: value}, of the study's dimensions; other frameworks lack what they do not have
  std::string label;  // "2 workers, 1 thread, batch 32"
  std::vector<Run> runs;
  // Global images per second: of each run or, where there is one run alone, of each of its repeats.
  std::vector<double> speeds;

  // What tests may count: one of each run. Repeats share a process, and with it all that differs from start to start.
  std::vector<double> run_speeds() const;
  const Run& example() const { return runs.front(); }
  bool is_one_run() const { return runs.size() == 1 && speeds.size() > 1; }
  double median_speed() const;
};

struct Study {
  std::string id;  // for names of figures and files
  std::string title, question, source;
  std::string facet = {};  // of a part of a study: what it is a part of it by, "2 servers"
  std::string kind;        // the figure it asks for; empty: whatever suits
  std::vector<Dimension> dimensions;
  std::vector<Cell> cells;  // with a run each at least
  std::vector<Run> failed;  // with `error`, or interrupted
  std::vector<std::string> warnings;

  const Dimension* dimension(const std::string& option) const;
  bool varies(const std::string& option) const { return dimension(option) != nullptr; }
  bool varies_in_numbers(const std::string& option) const { return varies(option) && dimension(option)->is_numeric(); }
  std::vector<const Dimension*> numeric_dimensions() const;
  // The cell that has these settings; none: it was not run.
  const Cell* find(const Json& settings) const;
};

// One study for each name, and one for the runs that have none. Runs of several machines, builds or other settings are
// never mixed in a cell: what differs becomes a dimension, and a warning says so. Versions of another framework are
// frameworks of their own ("pytorch 2.1"). Between two sides (Run::side), machine and build are what is compared, and
// options that differ from side to side alone are left to who compares them.
std::vector<Study> make_studies(const RecordSet& records);

// Measured on the same machine by the same build, so that a comparison means something.
bool are_comparable(const Cell& first, const Cell& second);

// "2 workers", "batch 32", "all_reduce"; several in a row with commas between.
std::string setting_text(const std::string& option, const Json& value);
std::string settings_text(const Json& settings);
// An option as an axis has it: "workers", "threads per worker", "batch per worker".
std::string option_title(const std::string& option);
// Letters, digits and dashes.
std::string slug(const std::string& text);

}  // namespace trireme::report
