// Sets of moments, as intervals that are sorted and apart: unions, differences, lengths. What counts twice in a sum of
// spans counts once here. Used by the analysis of traces.
#pragma once

#include <vector>

namespace trireme::report {

struct Interval {
  double begin = 0, end = 0;

  bool operator==(const Interval&) const = default;
};

class Intervals {
 public:
  Intervals() = default;
  explicit Intervals(std::vector<Interval> any);  // in any order, overlapping or not; empty ones count for nothing

  double length() const;
  const std::vector<Interval>& parts() const { return parts_; }

  Intervals united_with(const Intervals& other) const;
  Intervals without(const Intervals& other) const;
  Intervals common_with(const Intervals& other) const;

 private:
  std::vector<Interval> parts_;
};

}  // namespace trireme::report
