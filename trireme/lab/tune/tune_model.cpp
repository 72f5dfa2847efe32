#include "trireme/lab/tune/tune_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "trireme/perf/statistics.hpp"

namespace trireme::lab {
namespace {

// Prior: typical shares of what a core and the memory can do.
constexpr double kUsualUtilisation = 0.5;
constexpr double kUnsharedWork = 0.05;          // share of the work that threads do not share
constexpr double kPassesOverVariables = 5;      // per update: value, gradient and state, read and written
constexpr double kSecondsPerExchange = 100e-6;  // per bucket

// Weight of the facts; each trial weighs 1.
constexpr double kWeightOfFacts = 0.1;
constexpr double kLeastFactor = 0.05;  // no term becomes a gain

enum Term : std::size_t { shared_work, unshared_work, update, exchange, latency };

constexpr double kUsualError = 0.25;    // of the cost model: a quarter up or down
constexpr double kNearness = 1.5;       // doublings over which errors stay alike
constexpr double kOtherText = 0.7;      // similarity of two different texts
constexpr double kShareOfSingle = 0.6;  // of an error caused by a single setting, whatever the others

// Must form a covariance over all points: nothing may be similar to two things that are dissimilar to each other.
double likeness(const std::variant<double, std::string>& a, const std::variant<double, std::string>& b) {
  const double *one = std::get_if<double>(&a), *other = std::get_if<double>(&b);
  if (one == nullptr && other == nullptr) return a == b ? 1 : kOtherText;
  if (one == nullptr || other == nullptr) return 0;
  if (*one == *other) return 1;
  const double doublings = std::log2((1 + *one) / (1 + *other)) / kNearness;
  return std::exp(-doublings * doublings / 2);
}

// Errors are sums of effects of single settings and of their combination.
double covariance(const SettingPoint& a, const SettingPoint& b) {
  double sum = 0, product = 1;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double one = likeness(a[i], b[i]);
    sum += one;
    product *= one;
  }
  const double mean = a.empty() ? 1 : sum / static_cast<double>(a.size());
  return kUsualError * kUsualError * (kShareOfSingle * mean + (1 - kShareOfSingle) * product);
}

}  // namespace

CholeskyFactor::CholeskyFactor(std::vector<std::vector<double>> matrix) : lower_(std::move(matrix)) {
  for (std::size_t i = 0; i < lower_.size(); ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      double value = lower_[i][j];
      for (std::size_t k = 0; k < j; ++k) value -= lower_[i][k] * lower_[j][k];
      if (i == j && !(value > 0)) throw std::invalid_argument("the matrix is not positive definite");
      lower_[i][j] = i == j ? std::sqrt(value) : value / lower_[j][j];
    }
  }
}

std::vector<double> CholeskyFactor::solve_lower(std::vector<double> right) const {
  for (std::size_t i = 0; i < right.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) right[i] -= lower_[i][j] * right[j];
    right[i] /= lower_[i][i];
  }
  return right;
}

std::vector<double> CholeskyFactor::solve(std::vector<double> right) const {
  right = solve_lower(std::move(right));
  for (std::size_t i = right.size(); i-- > 0;) {
    for (std::size_t j = i + 1; j < right.size(); ++j) right[i] -= lower_[j][i] * right[j];
    right[i] /= lower_[i][i];
  }
  return right;
}

StepCostModel::StepCostModel(const CostFacts& facts) : facts_(facts) { factors_.fill(1); }

StepCostModel::Terms StepCostModel::terms(const WorkLayout& layout) const {
  const double work = layout.batch * facts_.flops_per_image / (facts_.flops_per_second * kUsualUtilisation);
  const bool exchanges = layout.workers > 1 || layout.servers > 0;
  // Through the bottleneck: a worker's share of an all-reduce, or a server's share of all traffic.
  const double traffic =
      layout.servers > 0 ? 2 * layout.workers / layout.servers : 2 * (layout.workers - 1) / layout.workers;
  Terms seconds{};
  seconds[shared_work] = work / layout.threads;
  seconds[unshared_work] = kUnsharedWork * work * (1 - 1 / layout.threads);
  // Workers of one machine update their replicas through the same memory.
  seconds[update] = kPassesOverVariables * layout.workers * facts_.gradient_bytes / facts_.bytes_per_second;
  if (exchanges && facts_.gradient_bytes > 0) {
    seconds[exchange] = traffic * facts_.gradient_bytes / facts_.bytes_per_second;
    seconds[latency] = kSecondsPerExchange * std::ceil(facts_.gradient_bytes / layout.bucket_bytes);
  }
  return seconds;
}

double StepCostModel::step_seconds(const WorkLayout& layout) const {
  const Terms seconds = terms(layout);
  return std::inner_product(seconds.begin(), seconds.end(), factors_.begin(), 0.0);
}

// Least squares of relative errors. Scales all terms together first, so that a machine busier than when its peak was
// measured does not distort the ratios of terms.
void StepCostModel::fit(std::span<const TimedLayout> trials) {
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

std::string StepCostModel::text() const {
  const WorkLayout one{}, two{.threads = 2}, pair{.workers = 2, .bucket_bytes = std::max(facts_.gradient_bytes, 1.0)};
  const double image = terms(one)[shared_work] * factors_[shared_work];
  const double unshared = 2 * terms(two)[unshared_work] * factors_[unshared_work];
  std::string text = fmt::format("{:.3g} ms per image and core, {:.2g} % of it not shared by threads", image * 1e3,
                                 100 * unshared / image);
  if (facts_.gradient_bytes <= 0) return text;
  text += fmt::format("; {:.3g} ms per update", terms(one)[update] * factors_[update] * 1e3);
  return text + fmt::format("; {:.3g} MB of gradients, taking 2 workers {:.3g} ms and {:.3g} ms per bucket",
                            facts_.gradient_bytes / 1e6, terms(pair)[exchange] * factors_[exchange] * 1e3,
                            terms(pair)[latency] * factors_[latency] * 1e3);
}

Correction::Correction(std::vector<KnownError> known) : known_(std::move(known)) {
  if (known_.empty()) return;
  std::vector<std::vector<double>> matrix(known_.size(), std::vector<double>(known_.size()));
  std::vector<double> errors;
  for (std::size_t i = 0; i < known_.size(); ++i) {
    for (std::size_t j = 0; j <= i; ++j) matrix[i][j] = covariance(known_[i].point, known_[j].point);
    matrix[i][i] += known_[i].noise * known_[i].noise;
    errors.push_back(known_[i].error);
  }
  factor_.emplace(std::move(matrix));
  weights_ = factor_->solve(std::move(errors));
}

Correction::Estimate Correction::at(const SettingPoint& point) const {
  double variance = covariance(point, point);
  if (!factor_) return {0, std::sqrt(variance)};
  std::vector<double> shared;
  double error = 0;
  for (std::size_t i = 0; i < known_.size(); ++i) {
    shared.push_back(covariance(point, known_[i].point));
    error += shared.back() * weights_[i];
  }
  for (const double part : factor_->solve_lower(std::move(shared))) variance -= part * part;
  return {error, std::sqrt(std::max(variance, 0.0))};
}

}  // namespace trireme::lab
