// By how much a cost model errs at one configuration, learnt from the trials of others: those that share settings err
// alike. A Gaussian process over the settings; it says how sure it is, and so where a trial would teach most. Made by
// `tune`.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "trireme/lab/symmetric_solve.hpp"

namespace trireme::lab {

// A configuration as a point: its value on each axis. Numbers are near each other by their ratio; texts are the same
// or not.
using SettingPoint = std::vector<std::variant<double, std::string>>;

struct KnownError {
  SettingPoint point;
  double error = 0;  // log(measured / modelled)
  double noise = 0;  // standard deviation of it
};

class Correction {
 public:
  struct Estimate {
    double error = 0, deviation = 0;
  };

  explicit Correction(std::vector<KnownError> known);
  Estimate at(const SettingPoint& point) const;

 private:
  std::vector<KnownError> known_;
  std::optional<CholeskyFactor> factor_;  // none: nothing is known
  std::vector<double> weights_;
};

}  // namespace trireme::lab
