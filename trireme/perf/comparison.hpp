// Is one configuration faster than another, and by how much? Every sentence of a report that says so, and the gate
// against regressions, ask here. A difference is claimed only where the rank test supports it; where there are too few
// runs to support anything, that is what is said.
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
  double p = 1;            // two-sided, corrected where it is one of several comparisons
  double smallest_p = 1;   // that this number of runs could reach, corrected likewise
  int direction = 0;       // of the ranks: 1 where the first's are the higher ones, -1 where the lower
  Verdict verdict = Verdict::too_few_runs;

  bool is_supported() const { return verdict == Verdict::larger || verdict == Verdict::smaller; }
};

// What p, the ranks and the ratio support together: where ranks and ratio point opposite ways (most samples moved
// a little one way, some far the other) there is no direction to claim.
Verdict verdict_of(const Comparison& comparison);

// Samples of which larger is better or worse, as the caller knows; all above 0.
Comparison compare(std::span<const double> first, std::span<const double> second);

// Pairs that are compared within the pair only, as one: the ratio is the geometric mean of theirs, without an interval.
Comparison compare_overall(std::span<const SamplePair> pairs);

// Of several comparisons that are looked at together: p values as Holm corrects them, and the verdicts that remain.
void correct_together(std::span<Comparison> comparisons);
// p values in the same order, each at least what it was: the chance that any of them misleads stays what one had.
std::vector<double> holm(std::span<const double> p);

// Runs of each side that can show a difference among so many comparisons.
int runs_needed(std::size_t comparisons);

// "p = 0.003", "p < 0.001"
std::string p_text(double p);
// The same and, where p alone would have been enough, why nothing is claimed.
std::string p_text(const Comparison& comparison);

}  // namespace trireme::perf
