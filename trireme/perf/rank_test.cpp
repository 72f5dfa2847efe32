#include "trireme/perf/rank_test.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

namespace trireme::perf {
namespace {

constexpr std::size_t kMostExact = 60;

// Twice the ranks, which are whole numbers also where ties share one: {3, 1, 3} has {5, 2, 5}.
std::vector<std::size_t> doubled_ranks(std::span<const double> samples) {
  std::vector<std::size_t> order(samples.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return samples[a] < samples[b]; });
  std::vector<std::size_t> ranks(samples.size());
  for (std::size_t first = 0; first < order.size();) {
    std::size_t last = first;
    while (last + 1 < order.size() && samples[order[last + 1]] == samples[order[first]]) ++last;
    for (std::size_t i = first; i <= last; ++i) ranks[order[i]] = (first + 1) + (last + 1);
    first = last + 1;
  }
  return ranks;
}

struct Ranked {
  std::vector<std::size_t> doubled;  // of both sets, the first set's first
  std::size_t first_size = 0;
  double doubled_sum = 0;   // of the first set
  double expected_sum = 0;  // of the first set's doubled ranks, were there no difference

  std::size_t size() const { return doubled.size(); }
  // Of the (single) rank sum, were there no difference.
  double variance() const;
};

double Ranked::variance() const {
  const auto n = static_cast<double>(size()), a = static_cast<double>(first_size);
  double squares = 0;  // distances of ranks from their mean: smaller where there are ties
  for (const std::size_t rank : doubled) squares += std::pow(static_cast<double>(rank) / 2 - (n + 1) / 2, 2);
  return a * (n - a) / (n * (n - 1)) * squares;
}

Ranked rank(std::span<const double> first, std::span<const double> second) {
  std::vector<double> all(first.begin(), first.end());
  all.insert(all.end(), second.begin(), second.end());
  Ranked ranked{.doubled = doubled_ranks(all), .first_size = first.size()};
  for (std::size_t i = 0; i < first.size(); ++i) ranked.doubled_sum += static_cast<double>(ranked.doubled[i]);
  ranked.expected_sum = static_cast<double>(first.size()) * static_cast<double>(all.size() + 1);
  return ranked;
}

// How likely each doubled rank sum of the first set is, were there no difference: the share of all choices of
// first_size ranks that add up to it.
std::vector<double> sum_distribution(const Ranked& ranked) {
  const std::size_t total = std::accumulate(ranked.doubled.begin(), ranked.doubled.end(), std::size_t{0});
  // choices[k][s]: ways to choose k of the ranks seen so far with the sum s
  std::vector<std::vector<double>> choices(ranked.first_size + 1, std::vector<double>(total + 1, 0));
  choices[0][0] = 1;
  for (const std::size_t value : ranked.doubled) {
    for (std::size_t k = ranked.first_size; k > 0; --k) {
      for (std::size_t sum = total; sum >= value; --sum) choices[k][sum] += choices[k - 1][sum - value];
    }
  }
  std::vector<double> shares = std::move(choices[ranked.first_size]);
  const double all = std::accumulate(shares.begin(), shares.end(), 0.0);
  for (double& share : shares) share /= all;
  return shares;
}

// That a sum is as far from the expected one as this, or farther.
double exact_p(const std::vector<double>& shares, double sum, double expected) {
  const double distance = std::fabs(sum - expected);
  double as_far = 0;
  for (std::size_t s = 0; s < shares.size(); ++s) {
    if (std::fabs(static_cast<double>(s) - expected) >= distance) as_far += shares[s];
  }
  return std::min(1.0, as_far);
}

// Of the sum of two sums.
std::vector<double> convolved(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> result(a.size() + b.size() - 1, 0);
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] == 0) continue;
    for (std::size_t j = 0; j < b.size(); ++j) result[i + j] += a[i] * b[j];
  }
  return result;
}

double two_sided_normal(double z) { return std::erfc(std::fabs(z) / std::sqrt(2.0)); }

// With a correction for continuity: rank sums are whole numbers.
double normal_p(double distance, double variance) {
  if (!(variance > 0)) return 1;  // all samples are equal
  return std::min(1.0, two_sided_normal(std::max(0.0, distance - 0.5) / std::sqrt(variance)));
}

// Two of all choices: this set on top, or below.
double smallest_p(std::size_t first, std::size_t second) {
  const auto a = static_cast<double>(first), b = static_cast<double>(second);
  return std::min(1.0, 2 * std::exp(std::lgamma(a + 1) + std::lgamma(b + 1) - std::lgamma(a + b + 1)));
}

}  // namespace

RankTest rank_test(std::span<const double> first, std::span<const double> second) {
  if (first.empty() || second.empty()) return {};
  const Ranked ranked = rank(first, second);
  const auto size = static_cast<double>(first.size());
  const bool exact = ranked.size() <= kMostExact;
  return {.u = ranked.doubled_sum / 2 - size * (size + 1) / 2,
          .p = exact ? exact_p(sum_distribution(ranked), ranked.doubled_sum, ranked.expected_sum)
                     : normal_p(std::fabs(ranked.doubled_sum - ranked.expected_sum) / 2, ranked.variance()),
          .smallest_p = smallest_p(first.size(), second.size()),
          .exact = exact};
}

double sign_test(std::span<const double> samples) {
  const auto above = std::count_if(samples.begin(), samples.end(), [](double sample) { return sample > 0; });
  const auto n = std::count_if(samples.begin(), samples.end(), [](double sample) { return sample != 0; });
  double p = 0;  // of so many heads or more in n throws of a coin
  for (auto heads = static_cast<double>(above), throws = static_cast<double>(n); heads <= throws; ++heads) {
    p += std::exp(std::lgamma(throws + 1) - std::lgamma(heads + 1) - std::lgamma(throws - heads + 1) -
                  throws * std::log(2.0));
  }
  return std::min(1.0, p);
}

OverallTest overall_rank_test(std::span<const SamplePair> pairs) {
  OverallTest test{.p = 1, .exact = pairs.size() <= kMostExact};
  double sum = 0, expected = 0, variance = 0;
  std::vector<double> shares{1};
  for (const SamplePair& pair : pairs) {
    if (pair.first.empty() || pair.second.empty()) continue;
    const Ranked ranked = rank(pair.first, pair.second);
    sum += ranked.doubled_sum;
    expected += ranked.expected_sum;
    variance += ranked.variance();
    test.exact &= ranked.size() <= kMostExact / 2;
    if (test.exact) shares = convolved(shares, sum_distribution(ranked));
  }
  test.p = test.exact ? exact_p(shares, sum, expected) : normal_p(std::fabs(sum - expected) / 2, variance);
  return test;
}

}  // namespace trireme::perf
