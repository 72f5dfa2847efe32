// Two sets of records side by side, before and after a change: what got faster or slower, cell by cell and overall, by
// a test. `trireme report --baseline` shows it; with a threshold it is a gate against regressions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "trireme/perf/comparison.hpp"
#include "trireme/report/document.hpp"

namespace trireme::report {

struct CellChange {
  std::string study, label;
  std::vector<double> old_speeds, new_speeds;  // of each run
  std::string command;                         // of the new run
  perf::Comparison comparison;                 // new / old; corrected for the number of cells
};

struct BaselineComparison {
  std::vector<CellChange> changes;
  // All cells together, each compared with itself: the geometric mean of their ratios, and the test over all of them.
  perf::Comparison overall;
  std::vector<std::string> broken;  // what was measured before and is not now, or fails now: "batch 32: 3 runs failed"
  std::vector<std::string> warnings;
};

// Cells are matched by what their study varies and by network, batch and the like. Warned of are cells of one side
// alone and options that differ from side to side. Different hardware, or one that is not known, is a warning, or
// Error(bad_input) where `must_match`: a gate must not judge a machine. Error(bad_input) where nothing can be matched.
BaselineComparison compare_with_baseline(const RecordSet& old_records, const RecordSet& new_records, bool must_match);

// What is slower by more than this share, as far as the tests support it: "resnet50, batch 32: 0.91x (p = 0.008)".
// Empty: nothing is.
std::vector<std::string> regressions(const BaselineComparison& comparison, double share);
// No cell has the runs to show anything by itself; nor have all of them together.
bool is_blind_to_cells(const BaselineComparison& comparison);
bool is_blind(const BaselineComparison& comparison);

Document make_baseline_document(const BaselineComparison& comparison, const RecordSet& new_records);

}  // namespace trireme::report
