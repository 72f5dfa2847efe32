// Compares two sets of records, before and after a change: what got faster or slower, per cell and overall, by a test.
// Shown by `trireme report --baseline`; with a threshold it is a regression gate.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "trireme/perf/comparison.hpp"
#include "trireme/report/document.hpp"

namespace trireme::report {

struct CellChange {
  std::string study, label;
  std::vector<double> old_speeds, new_speeds;  // one per run
  std::string command;                         // of the new run
  perf::Comparison comparison;                 // new / old; corrected for the number of cells
};

struct BaselineComparison {
  std::vector<CellChange> changes;
  // All cells, each compared with itself: the geometric mean of their ratios, and the test over all of them.
  perf::Comparison overall;
  std::vector<std::string> broken;  // measured before, but now missing or failing: "batch 32: 3 runs failed"
  std::vector<std::string> warnings;
};

// Matches cells by varied options, network, batch and the like; warns of unmatched cells and differing options. Other
// or unknown hardware is a warning, or Error(bad_input) if `must_match`. Error(bad_input) if nothing matches.
BaselineComparison compare_with_baseline(const RecordSet& old_records, const RecordSet& new_records, bool must_match);

// What is slower by more than this share according to the tests: "resnet50, batch 32: 0.91x (p = 0.008)".
std::vector<std::string> regressions(const BaselineComparison& comparison, double share);
// No single cell has enough runs to show anything; nor do all together.
bool is_blind_to_cells(const BaselineComparison& comparison);
bool is_blind(const BaselineComparison& comparison);

Document make_baseline_document(const BaselineComparison& comparison, const RecordSet& new_records);

}  // namespace trireme::report
