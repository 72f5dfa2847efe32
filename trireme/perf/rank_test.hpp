// Rank tests of whether sets of samples differ: Mann-Whitney-Wilcoxon for two sets, Kruskal-Wallis for more. They
// assume no distribution: times on a shared machine are far from normal. Used by comparisons (comparison.hpp),
// intervals (intervals.hpp) and report findings.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace trireme::perf {

struct RankTest {
  double p = 1;           // two-sided
  double smallest_p = 1;  // best possible with this many samples, if all of one set were larger
  int direction = 0;      // 1: the first set has the higher ranks; -1: the lower ones; 0: neither
  bool exact = true;      // counted over all orders; otherwise approximated
  double u = 0;           // two sets: pairs in which the first set's sample is larger; a tie counts half
};

// Exact, with ties, up to 60 samples in total; else the normal approximation, corrected. An empty set gives p = 1.
RankTest rank_test(std::span<const double> first, std::span<const double> second);

// The largest u for which P(U <= u) is at most `chance` if there is no difference. None: even 0 is likelier.
std::optional<std::size_t> largest_u(std::size_t first, std::size_t second, double chance);

// p that samples are above 0 only by chance: one-sided, exact, by their signs. Samples of 0 are ignored.
double sign_test(std::span<const double> samples);

// Several pairs of sets, compared within the pair only (a pair per configuration, before and after a change): is one
// side larger overall? Adds up the pairs' rank sums; exact if all pairs and their number permit.
struct SamplePair {
  std::vector<double> first, second;
};
RankTest overall_rank_test(std::span<const SamplePair> pairs);

// Each set of a group is measured in another way, all else equal; groups differ in something else. Does the way matter
// in any group? One answer for all sets, without picking pairs: the sum of the groups' Kruskal-Wallis statistics among
// random permutations within groups (fixed seed). Two sets of one group use the rank-sum test above.
using SampleSets = std::vector<std::vector<double>>;
RankTest group_rank_test(std::span<const SampleSets> groups);

}  // namespace trireme::perf
