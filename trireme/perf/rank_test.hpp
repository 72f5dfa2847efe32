// Do sets of samples differ? Tests by ranks: of Mann, Whitney and Wilcoxon for two sets, of Kruskal and Wallis for
// more. They ask nothing of the samples' distribution: times of a shared machine are far from normal. Used by
// comparisons (comparison.hpp), intervals (intervals.hpp) and the findings of reports.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace trireme::perf {

struct RankTest {
  double p = 1;           // two-sided
  double smallest_p = 1;  // what this many samples could show at best, were all of one set larger
  int direction = 0;      // 1: the first set has the higher ranks; -1: the lower ones; 0: neither
  bool exact = true;      // counted over all orders; otherwise by an approximation
  double u = 0;           // of two sets: pairs in which the first set's sample is larger; a tie counts half
};

// Exact, ties included, up to 60 samples together; beyond that the normal approximation with corrections for ties and
// continuity. An empty set shows nothing: p = 1.
RankTest rank_test(std::span<const double> first, std::span<const double> second);

// The largest u that so many samples have, or stay below, with this chance at most, were there no difference. None:
// even 0 is likelier.
std::optional<std::size_t> largest_u(std::size_t first, std::size_t second, double chance);

// That samples are above 0 by more than chance: one-sided, exact, by their signs. Samples of 0 tell nothing.
double sign_test(std::span<const double> samples);

// Several pairs of sets that are compared within the pair only (one pair per configuration, before and after a change):
// is one side larger overall? The rank sums of the pairs are added up; exact where every pair and their number allow
// it.
struct SamplePair {
  std::vector<double> first, second;
};
RankTest overall_rank_test(std::span<const SamplePair> pairs);

// Sets of samples of which each is measured in another way, all else equal. Several such groups, with something else
// between them: does the way matter in any of them? One answer for all sets, however many: no pair is picked out. The
// sum of the groups' statistics (Kruskal and Wallis) among those of samples that were exchanged at random within their
// groups, by a fixed seed; two sets of one group have the rank-sum test above.
using SampleSets = std::vector<std::vector<double>>;
RankTest group_rank_test(std::span<const SampleSets> groups);

}  // namespace trireme::perf
