// Do two sets of samples differ? The rank-sum test of Mann, Whitney and Wilcoxon, which asks nothing of the samples'
// distribution: times of a shared machine are far from normal. Used by comparisons (comparison.hpp).
#pragma once

#include <span>
#include <vector>

namespace trireme::perf {

struct RankTest {
  double u = 0;           // pairs in which the first set's sample is larger; a tie counts half
  double p = 1;           // two-sided
  double smallest_p = 1;  // what this many samples could show at best, were all of one set larger
  bool exact = true;      // counted over all orders; otherwise by the normal approximation
};

// Exact, ties included, up to 60 samples together; beyond that the normal approximation with corrections for ties and
// continuity. An empty set shows nothing: p = 1.
RankTest rank_test(std::span<const double> first, std::span<const double> second);

// That samples are above 0 by more than chance: one-sided, exact, by their signs. Samples of 0 tell nothing.
double sign_test(std::span<const double> samples);

// Several pairs of sets that are compared within the pair only (one pair per configuration, before and after a change):
// is one side larger overall? The rank sums of the pairs are added up; exact where every pair and their number allow
// it.
struct SamplePair {
  std::vector<double> first, second;
};
struct OverallTest {
  double p = 1;  // two-sided
  bool exact = true;
};
OverallTest overall_rank_test(std::span<const SamplePair> pairs);

}  // namespace trireme::perf
