#include "trireme/perf/rank_test.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <numeric>
#include <random>

namespace trireme::perf {
namespace {

constexpr std::size_t kMostExact = 60;
constexpr int kExchanges = 4999;

// Doubled ranks, which are integers even with ties: {3, 1, 3} has {5, 2, 5}.
std::vector<std::size_t> doubled_ranks(std::span<const double> samples) {
  std::vector<std::size_t> order(samples.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, [&](std::size_t a, std::size_t b) { return samples[a] < samples[b]; });
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
  double expected_sum = 0;  // of the first set's doubled ranks, under no difference

  std::size_t size() const { return doubled.size(); }
  // Of the (single) rank sum, under no difference.
  double variance() const {
    const auto n = static_cast<double>(size()), a = static_cast<double>(first_size);
    double squares = 0;  // distances of ranks from their mean: smaller with ties
    for (const std::size_t rank : doubled) squares += std::pow(static_cast<double>(rank) / 2 - (n + 1) / 2, 2);
    return a * (n - a) / (n * (n - 1)) * squares;
  }
};

Ranked rank(std::span<const double> first, std::span<const double> second) {
  std::vector<double> all(first.begin(), first.end());
  all.insert(all.end(), second.begin(), second.end());
  Ranked ranked{.doubled = doubled_ranks(all), .first_size = first.size()};
  for (std::size_t i = 0; i < first.size(); ++i) ranked.doubled_sum += static_cast<double>(ranked.doubled[i]);
  ranked.expected_sum = static_cast<double>(first.size()) * static_cast<double>(all.size() + 1);
  return ranked;
}

// Probability of each doubled rank sum of the first set under no difference: the share of all choices of first_size
// ranks with that sum.
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

// Probability of a sum at least this far from the expected one.
double exact_p(const std::vector<double>& shares, double sum, double expected) {
  const double distance = std::fabs(sum - expected);
  double as_far = 0;
  for (std::size_t s = 0; s < shares.size(); ++s) {
    if (std::fabs(static_cast<double>(s) - expected) >= distance) as_far += shares[s];
  }
  return std::min(1.0, as_far);
}

// Distribution of the sum of two sums.
std::vector<double> convolved(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> result(a.size() + b.size() - 1, 0);
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] == 0) continue;
    for (std::size_t j = 0; j < b.size(); ++j) result[i + j] += a[i] * b[j];
  }
  return result;
}

double two_sided_normal(double z) { return std::erfc(std::fabs(z) / std::sqrt(2.0)); }

// With continuity correction: rank sums are integers.
double normal_p(double distance, double variance) {
  if (!(variance > 0)) return 1;  // all samples are equal
  return std::min(1.0, two_sided_normal(std::max(0.0, distance - 0.5) / std::sqrt(variance)));
}

// log(a! b! / (a + b)!): one choice as a share of all.
double one_choice(std::size_t first, std::size_t second) {
  const auto a = static_cast<double>(first), b = static_cast<double>(second);
  return std::lgamma(a + 1) + std::lgamma(b + 1) - std::lgamma(a + b + 1);
}

// Two of all choices: this set entirely on top, or below.
double two_choices(double logarithm_of_one) { return std::min(1.0, 2 * std::exp(logarithm_of_one)); }

int sign(double value) { return value > 0 ? 1 : value < 0 ? -1 : 0; }

// P(U <= u) under no difference and without ties.
std::vector<double> cumulative_u(std::size_t first, std::size_t second) {
  std::vector<double> chances(first * second + 1);
  if (first + second <= kMostExact) {
    std::vector<std::size_t> doubled(first + second);
    for (std::size_t i = 0; i < doubled.size(); ++i) doubled[i] = 2 * (i + 1);
    const std::vector<double> shares = sum_distribution({.doubled = std::move(doubled), .first_size = first});
    double sum = 0;
    for (std::size_t u = 0; u < chances.size(); ++u) {
      sum += shares[2 * u + first * (first + 1)];
      chances[u] = sum;
    }
    return chances;
  }
  const auto a = static_cast<double>(first), b = static_cast<double>(second);
  const double deviation = std::sqrt(a * b * (a + b + 1) / 12);
  for (std::size_t u = 0; u < chances.size(); ++u)
    chances[u] = std::erfc((a * b / 2 - static_cast<double>(u) - 0.5) / deviation / std::sqrt(2.0)) / 2;
  return chances;
}

// One group of sets: all ranks, set by set, and the Kruskal-Wallis statistic corrected for ties.
class RankedSets {
 public:
  explicit RankedSets(const SampleSets& sets) {
    std::vector<double> all;
    for (const std::vector<double>& set : sets) {
      if (set.empty()) continue;
      all.insert(all.end(), set.begin(), set.end());
      sizes_.push_back(set.size());
    }
    for (const std::size_t doubled : doubled_ranks(all)) ranks_.push_back(static_cast<double>(doubled) / 2);
    for (const double rank : ranks_) squares_ += std::pow(rank - mean(), 2);
  }

  double statistic() const {
    if (!(squares_ > 0)) return 0;  // all samples are equal
    double between = 0;
    std::size_t begin = 0;
    for (const std::size_t size : sizes_) {
      double distances = 0;
      for (std::size_t i = begin; i < begin + size; ++i) distances += ranks_[i] - mean();
      between += distances * distances / static_cast<double>(size);
      begin += size;
    }
    return static_cast<double>(ranks_.size() - 1) * between / squares_;
  }

  // The standard fixes the engine's numbers, but not those of distributions and shuffles.
  void exchange(std::mt19937_64& random) {
    for (std::size_t i = ranks_.size(); i > 1; --i) std::swap(ranks_[i - 1], ranks_[random() % i]);
  }

  // Logarithm of the smallest possible p: any order counts together with those in which sets of equal size swap places,
  // and with its mirror image, which is distinct if no sizes are equal.
  double smallest_share() const {
    double logarithm = -std::lgamma(static_cast<double>(ranks_.size()) + 1);
    std::map<std::size_t, int> alike;
    for (const std::size_t size : sizes_) {
      logarithm += std::lgamma(static_cast<double>(size) + 1);
      ++alike[size];
    }
    for (const auto& [size, count] : alike) logarithm += std::lgamma(static_cast<double>(count) + 1);
    if (alike.size() == sizes_.size() && sizes_.size() > 1) logarithm += std::log(2.0);
    return logarithm;
  }

 private:
  double mean() const { return (static_cast<double>(ranks_.size()) + 1) / 2; }

  std::vector<double> ranks_;
  std::vector<std::size_t> sizes_;
  double squares_ = 0;  // distances of all ranks from their mean
};

double sum_of_statistics(const std::vector<RankedSets>& groups) {
  double sum = 0;
  for (const RankedSets& group : groups) sum += group.statistic();
  return sum;
}

}  // namespace

RankTest rank_test(std::span<const double> first, std::span<const double> second) {
  if (first.empty() || second.empty()) return {};
  const Ranked ranked = rank(first, second);
  const auto size = static_cast<double>(first.size());
  const bool exact = ranked.size() <= kMostExact;
  return {.p = exact ? exact_p(sum_distribution(ranked), ranked.doubled_sum, ranked.expected_sum)
                     : normal_p(std::fabs(ranked.doubled_sum - ranked.expected_sum) / 2, ranked.variance()),
          .smallest_p = two_choices(one_choice(first.size(), second.size())),
          .direction = sign(ranked.doubled_sum - ranked.expected_sum),
          .exact = exact,
          .u = ranked.doubled_sum / 2 - size * (size + 1) / 2};
}

std::optional<std::size_t> largest_u(std::size_t first, std::size_t second, double chance) {
  const std::vector<double> chances = cumulative_u(first, second);
  const auto above = std::ranges::find_if(chances, [&](double value) { return value > chance; });
  if (above == chances.begin()) return std::nullopt;
  return static_cast<std::size_t>(above - chances.begin()) - 1;
}

double sign_test(std::span<const double> samples) {
  const auto above = std::ranges::count_if(samples, [](double sample) { return sample > 0; });
  const auto n = std::ranges::count_if(samples, [](double sample) { return sample != 0; });
  double p = 0;  // of at least this many heads in n coin tosses
  for (auto heads = static_cast<double>(above), throws = static_cast<double>(n); heads <= throws; ++heads) {
    p += std::exp(std::lgamma(throws + 1) - std::lgamma(heads + 1) - std::lgamma(throws - heads + 1) -
                  throws * std::log(2.0));
  }
  return std::min(1.0, p);
}

RankTest overall_rank_test(std::span<const SamplePair> pairs) {
  RankTest test{.exact = pairs.size() <= kMostExact};
  double sum = 0, expected = 0, variance = 0, one_of_all = 0;
  std::vector<double> shares{1};
  for (const SamplePair& pair : pairs) {
    if (pair.first.empty() || pair.second.empty()) continue;
    const Ranked ranked = rank(pair.first, pair.second);
    sum += ranked.doubled_sum;
    expected += ranked.expected_sum;
    variance += ranked.variance();
    one_of_all += one_choice(pair.first.size(), pair.second.size());
    test.exact &= ranked.size() <= kMostExact / 2;
    if (test.exact) shares = convolved(shares, sum_distribution(ranked));
  }
  test.p = test.exact ? exact_p(shares, sum, expected) : normal_p(std::fabs(sum - expected) / 2, variance);
  test.smallest_p = two_choices(one_of_all);
  test.direction = sign(sum - expected);
  return test;
}

RankTest group_rank_test(std::span<const SampleSets> groups) {
  // The same test, exact instead of sampled.
  if (groups.size() == 1 && groups[0].size() == 2) return rank_test(groups[0][0], groups[0][1]);
  std::vector<RankedSets> ranked;
  double smallest = 0;
  for (const SampleSets& sets : groups) {
    ranked.emplace_back(sets);
    smallest += ranked.back().smallest_share();
  }
  constexpr double kRounding = 1e-9;  // equal sums in another order
  const double measured = sum_of_statistics(ranked) - kRounding;
  std::mt19937_64 random(1);
  int as_far = 1;  // the measured order is one of all
  for (int i = 0; i < kExchanges; ++i) {
    for (RankedSets& group : ranked) group.exchange(random);
    as_far += sum_of_statistics(ranked) >= measured;
  }
  constexpr double kOrders = kExchanges + 1;
  return {.p = as_far / kOrders, .smallest_p = std::clamp(std::exp(smallest), 1 / kOrders, 1.0), .exact = false};
}

}  // namespace trireme::perf
