// Values to places on a drawing, and the round values at which an axis has its ticks. Used by svg.cpp.
#pragma once

#include <string>
#include <vector>

namespace trireme::report {

// The value `low` lies at `from`, `high` at `to`; logarithmic scales need values above 0.
class SvgScale {
 public:
  SvgScale(double low, double high, double from, double to, bool logarithmic);

  double place(double value) const;
  // Round values within the range: 0, 50, 100 ...; powers of ten (and of two on short logarithmic ranges).
  std::vector<double> ticks() const;

 private:
  double low_, high_, from_, to_;
  bool logarithmic_;
};

// "1", "2.5k", "1M"
std::string tick_text(double value);

}  // namespace trireme::report
