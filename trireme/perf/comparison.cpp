#include "trireme/perf/comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

#include "trireme/perf/statistics.hpp"

namespace trireme::perf {
namespace {

Comparison judged(double ratio, const Interval& interval, const RankTest& test) {
  Comparison comparison{
      .ratio = ratio, .interval = interval, .p = test.p, .smallest_p = test.smallest_p, .direction = test.direction};
  comparison.verdict = verdict_of(comparison);
  return comparison;
}

}  // namespace

Verdict verdict_of(const Comparison& comparison) {
  const bool differs = comparison.p < kSignificance;
  if (differs && comparison.ratio > 1 && comparison.direction > 0) return Verdict::larger;
  if (differs && comparison.ratio < 1 && comparison.direction < 0) return Verdict::smaller;
  return comparison.smallest_p < kSignificance ? Verdict::no_difference_shown : Verdict::too_few_runs;
}

Comparison compare(std::span<const double> first, std::span<const double> second) {
  if (first.empty() || second.empty()) return {};
  return judged(median(first) / median(second), ratio_interval(first, second), rank_test(first, second));
}

Comparison compare_overall(std::span<const SamplePair> pairs) {
  if (pairs.empty()) return {};
  double logarithms = 0;
  for (const SamplePair& pair : pairs) logarithms += std::log(median(pair.first) / median(pair.second));
  return judged(std::exp(logarithms / static_cast<double>(pairs.size())), {}, overall_rank_test(pairs));
}

void correct_together(std::span<Comparison> comparisons) {
  std::vector<double> p;
  for (const Comparison& comparison : comparisons) p.push_back(comparison.p);
  const std::vector<double> corrected = holm(p);
  for (std::size_t i = 0; i < comparisons.size(); ++i) {
    comparisons[i].p = corrected[i];
    comparisons[i].smallest_p = std::min(1.0, comparisons[i].smallest_p * static_cast<double>(comparisons.size()));
    comparisons[i].verdict = verdict_of(comparisons[i]);
  }
}

std::vector<double> holm(std::span<const double> p) {
  std::vector<std::size_t> order(p.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return p[a] < p[b]; });
  std::vector<double> corrected(p.size());
  double largest = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    largest = std::max(largest, std::min(1.0, p[order[i]] * static_cast<double>(p.size() - i)));
    corrected[order[i]] = largest;
  }
  return corrected;
}

int runs_needed(std::size_t comparisons) {
  double smallest = 2;  // two of all orders of n and n runs
  int runs = 0;
  while (smallest * static_cast<double>(std::max<std::size_t>(comparisons, 1)) >= kSignificance) {
    ++runs;
    smallest *= static_cast<double>(runs) / (2.0 * (2 * runs - 1));  // C(2n, n) from C(2n - 2, n - 1)
  }
  return runs;
}

std::string p_text(double p) {
  if (p < 0.001) return "p < 0.001";
  return p < 0.0995 ? fmt::format("p = {:.3f}", p) : fmt::format("p = {:.2f}", p);
}

std::string p_text(const Comparison& comparison) {
  const bool is_contradiction = comparison.p < kSignificance && comparison.verdict == Verdict::no_difference_shown;
  return p_text(comparison.p) + (is_contradiction ? ", but medians and ranks disagree" : "");
}

}  // namespace trireme::perf
