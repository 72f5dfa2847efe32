#include "trireme/lab/cost_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "trireme/lab/symmetric_solve.hpp"
#include "trireme/perf/statistics.hpp"

namespace trireme::lab {
namespace {

// Before any trial: usual shares of what a core and the memory could do.
constexpr double kUsualUtilisation = 0.5;
constexpr double kUnsharedWork = 0.05;          // of the work, by all threads but one
constexpr double kPassesOverVariables = 5;      // of an update: value, gradient and state, read and written
constexpr double kSecondsPerExchange = 100e-6;  // of one bucket

// How much the facts weigh beside trials, each of which weighs 1.
constexpr double kWeightOfFacts = 0.1;
constexpr double kLeastFactor = 0.05;  // no term becomes a gain

enum Term : std::size_t { shared_work, unshared_work, update, exchange, latency };

}  // namespace

CostModel::CostModel(const CostFacts& facts) : facts_(facts) { factors_.fill(1); }

CostModel::Terms CostModel::terms(const WorkLayout& layout) const {
  const double work = layout.batch * facts_.flops_per_image / (facts_.flops_per_second * kUsualUtilisation);
  const bool exchanges = layout.workers > 1 || layout.servers > 0;
  // Through the busiest place: a worker's share of an all-reduce, or a server's share of what all send and fetch.
  const double traffic =
      layout.servers > 0 ? 2 * layout.workers / layout.servers : 2 * (layout.workers - 1) / layout.workers;
  Terms seconds{};
  seconds[shared_work] = work / layout.threads;
  seconds[unshared_work] = kUnsharedWork * work * (1 - 1 / layout.threads);
  // Workers of one machine update their replicas over the same memory.
  seconds[update] = kPassesOverVariables * layout.workers * facts_.gradient_bytes / facts_.bytes_per_second;
  if (exchanges && facts_.gradient_bytes > 0) {
    seconds[exchange] = traffic * facts_.gradient_bytes / facts_.bytes_per_second;
    seconds[latency] = kSecondsPerExchange * std::ceil(facts_.gradient_bytes / layout.bucket_bytes);
  }
  return seconds;
}

double CostModel::step_seconds(const WorkLayout& layout) const {
  const Terms seconds = terms(layout);
  return std::inner_product(seconds.begin(), seconds.end(), factors_.begin(), 0.0);
}

// Least squares of relative errors. All terms are first scaled alike, so that a machine that is busier than its peak
// was measured to be does not bend the terms against each other.
void CostModel::fit(std::span<const TimedLayout> trials) {
  factors_.fill(1);
  if (trials.empty()) return;
  std::vector<double> scales;
  for (const TimedLayout& trial : trials) scales.push_back(trial.step_seconds / step_seconds(trial.layout));
  const double scale = perf::median(scales);
  std::vector<std::vector<double>> matrix(kTerms, std::vector<double>(kTerms));
  std::vector<double> right(kTerms, kWeightOfFacts);
  for (std::size_t i = 0; i < kTerms; ++i) matrix[i][i] = kWeightOfFacts;
  for (const TimedLayout& trial : trials) {
    Terms shares = terms(trial.layout);
    for (double& share : shares) share *= scale / trial.step_seconds;
    for (std::size_t i = 0; i < kTerms; ++i) {
      right[i] += shares[i];
      for (std::size_t j = 0; j < kTerms; ++j) matrix[i][j] += shares[i] * shares[j];
    }
  }
  const std::vector<double> solution = CholeskyFactor(std::move(matrix)).solve(right);
  for (std::size_t i = 0; i < kTerms; ++i) factors_[i] = scale * std::max(solution[i], kLeastFactor);
}

std::string CostModel::text() const {
  const WorkLayout one{}, two{.threads = 2}, pair{.workers = 2, .bucket_bytes = std::max(facts_.gradient_bytes, 1.0)};
  const double image = terms(one)[shared_work] * factors_[shared_work];
  const double unshared = 2 * terms(two)[unshared_work] * factors_[unshared_work];
  std::string text = fmt::format("{:.3g} ms per image and core, {:.2g} % of it not shared by threads", image * 1e3,
                                 100 * unshared / image);
  if (facts_.gradient_bytes <= 0) return text;
  text += fmt::format("; {:.3g} ms per update", terms(one)[update] * factors_[update] * 1e3);
  return text + fmt::format("; {:.3g} MB of gradients, of 2 workers in {:.3g} ms and {:.3g} ms per bucket",
                            facts_.gradient_bytes / 1e6, terms(pair)[exchange] * factors_[exchange] * 1e3,
                            terms(pair)[latency] * factors_[latency] * 1e3);
}

}  // namespace trireme::lab
