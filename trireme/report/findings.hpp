// What a study supports, by perf::compare(); what the test does not support is reported as such.
#pragma once

#include <vector>

#include "trireme/report/document.hpp"

namespace trireme::report {

// From comparisons: best configuration, processes versus threads, scaling, effect of options, frameworks.
std::vector<Finding> comparison_findings(const Study& study, const std::vector<Figure>& figures);
// The first of these: the fastest configuration per kind of work, as far as the test supports it.
std::vector<Finding> best_findings(const Study& study, const std::string& figure = "");
// Without comparisons: where time goes, cost of input, failed runs.
std::vector<Finding> fact_findings(const Study& study, const std::vector<Figure>& figures);
std::vector<Finding> training_findings(const std::vector<Training>& records, const std::vector<Figure>& figures);
std::vector<Finding> network_findings(const std::vector<Figure>& figures);
// Recommended settings for each measured network, the best of all studies.
struct StudyFigure {
  const Study* study;
  std::string figure;  // its first; empty: none
};
std::vector<Guideline> guidelines_of(const std::vector<StudyFigure>& studies);

// Groups cells that do the same work (network, pass, precision, device, data, worker exchange, framework, machine,
// build), so that more images per second are better. `except`: an option that may differ.
std::vector<std::vector<const Cell*>> same_work(const Study& study, const std::string& except = "");
// "none" (no exchange, an upper bound), "asynchronous" (no waiting, another algorithm), else empty.
std::string exchange_of(const Run& run);
const Cell& fastest(const std::vector<const Cell*>& cells);
// Cells whose speed cannot be told from that of `best`, without `best` itself.
std::vector<const Cell*> not_told_apart(const Cell& best, const std::vector<const Cell*>& cells);

std::string where_text(const Json& settings);  // " with batch 32"; none: empty
std::string short_error(const Run& run);       // first line, cut to fit a sentence

// The first figure whose id has this suffix, else the first figure, else empty.
std::string figure_ending(const std::vector<Figure>& figures, const std::string& suffix);

}  // namespace trireme::report
