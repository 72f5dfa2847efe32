// Sentences that a study supports. Every comparison goes through perf::compare(); what the test does not support is
// said to be so, never claimed.
#pragma once

#include <vector>

#include "trireme/report/document.hpp"

namespace trireme::report {

// Of what was compared: the best configuration, processes against threads, scaling, whether options matter, frameworks.
std::vector<Finding> comparison_findings(const Study& study, const std::vector<Figure>& figures);
// The first of them: the fastest configuration of each kind of work, as far as the test supports it.
std::vector<Finding> best_findings(const Study& study, const std::string& figure = "");
// Whether each option makes a difference.
std::vector<Finding> option_findings(const Study& study, const std::string& figure);
// Of what was measured without a comparison: where time goes, what input costs, runs that failed.
std::vector<Finding> fact_findings(const Study& study, const std::vector<Figure>& figures);
std::vector<Finding> training_findings(const std::vector<FileRecord>& records, const std::vector<Figure>& figures);
std::vector<Finding> network_findings(const std::vector<Figure>& figures);
// The settings to use for each network that was measured, the best of all studies.
struct StudyFigure {
  const Study* study;
  std::string figure;  // its first; empty: it has none
};
std::vector<Guideline> guidelines_of(const std::vector<StudyFigure>& studies);

// Cells that do the same work (network, pass, precision, device, data, how workers keep together, framework, machine,
// build), so that more images per second are better. `except`: an option that may differ nevertheless.
std::vector<std::vector<const Cell*>> same_work(const Study& study, const std::string& except = "");
// How the workers of a training keep together: "none" where they exchange nothing, which is a ceiling; "asynchronous"
// where they do not wait for each other, which is another algorithm; else empty.
std::string exchange_of(const Run& run);
const Cell& fastest(const std::vector<const Cell*>& cells);
// Those whose speed could not be told from the fastest one's, which is not among them.
std::vector<const Cell*> not_told_apart(const Cell& best, const std::vector<const Cell*>& cells);

// The first line of what went wrong, as far as a sentence bears it.
std::string short_error(const Run& run);

// The first figure whose id ends so; otherwise the first, or none.
std::string figure_ending(const std::vector<Figure>& figures, const std::string& suffix);

}  // namespace trireme::report
