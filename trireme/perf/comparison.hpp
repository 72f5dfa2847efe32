// Decides whether one configuration is faster than another, and by how much, for all sentences of reports and the
// regression gate. Claims a difference only if the rank test supports it; says so if there are too few runs.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trireme/perf/intervals.hpp"
#include "trireme/perf/rank_test.hpp"

namespace trireme::perf {

inline constexpr double kSignificance = 0.05;

enum class Verdict : std::uint8_t {
  larger,   // the first is larger, by the test
  smaller,  // the first is smaller
  no_difference_shown,
  too_few_runs,  // no outcome of the test could have shown a difference
};

struct Comparison {
  double ratio = 1;        // of the medians, first / second
  Interval interval = {};  // of the ratio
  double p = 1;            // two-sided, corrected if one of several comparisons
  double smallest_p = 1;   // reachable with this number of runs, corrected likewise
  int direction = 0;       // of the ranks: 1 if the first's are higher, -1 if lower
  Verdict verdict = Verdict::too_few_runs;

  bool is_supported() const { return verdict == Verdict::larger || verdict == Verdict::smaller; }
};

// Claims no direction if ranks and ratio disagree (most samples moved a little one way, some far the other way).
Verdict verdict_of(const Comparison& comparison);

Comparison compare(std::span<const double> first, std::span<const double> second);  // samples must be above 0

// Several pairs as one, compared within pairs: the ratio is the geometric mean of theirs, without an interval.
Comparison compare_overall(std::span<const SamplePair> pairs);

void correct_together(std::span<Comparison> comparisons);  // Holm-corrects p values and verdicts
std::vector<double> holm(std::span<const double> p);       // same order; the chance that any misleads stays the same

int runs_needed(std::size_t comparisons);  // per side, to show a difference

std::string p_text(double p);                      // "p = 0.003", "p < 0.001"
std::string p_text(const Comparison& comparison);  // and, if p would suffice, why nothing is claimed

}  // namespace trireme::perf
