#include "trireme/lab/correction.hpp"

#include <algorithm>
#include <cmath>

namespace trireme::lab {
namespace {

constexpr double kUsualError = 0.25;    // of the cost model: a quarter up or down
constexpr double kNearness = 1.5;       // doublings over which errors stay alike
constexpr double kOtherText = 0.7;      // likeness of two texts
constexpr double kShareOfSingle = 0.6;  // of an error that comes from one setting, whatever the others are

// Of all points together these are a covariance: what is alike to two things that are not alike would make it none.
double likeness(const std::variant<double, std::string>& a, const std::variant<double, std::string>& b) {
  const double *one = std::get_if<double>(&a), *other = std::get_if<double>(&b);
  if (one == nullptr && other == nullptr) return a == b ? 1 : kOtherText;
  if (one == nullptr || other == nullptr) return 0;
  if (*one == *other) return 1;
  const double doublings = std::log2((1 + *one) / (1 + *other)) / kNearness;
  return std::exp(-doublings * doublings / 2);
}

// Errors are sums of what single settings cause and of what only this combination does.
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
