#include "trireme/report/intervals.hpp"

#include <algorithm>

namespace trireme::report {

Intervals::Intervals(std::vector<Interval> any) {
  std::erase_if(any, [](const Interval& part) { return !(part.end > part.begin); });
  std::sort(any.begin(), any.end(), [](const Interval& a, const Interval& b) { return a.begin < b.begin; });
  for (const Interval& part : any) {
    if (!parts_.empty() && part.begin <= parts_.back().end) {
      parts_.back().end = std::max(parts_.back().end, part.end);
    } else {
      parts_.push_back(part);
    }
  }
}

double Intervals::length() const {
  double sum = 0;
  for (const Interval& part : parts_) sum += part.end - part.begin;
  return sum;
}

Intervals Intervals::united_with(const Intervals& other) const {
  std::vector<Interval> all = parts_;
  all.insert(all.end(), other.parts_.begin(), other.parts_.end());
  return Intervals(std::move(all));
}

Intervals Intervals::without(const Intervals& other) const {
  Intervals result;
  auto hole = other.parts_.begin();
  for (Interval part : parts_) {
    while (hole != other.parts_.end() && hole->end <= part.begin) ++hole;
    // The last hole may reach into the next part: it is looked at again.
    for (auto at = hole; at != other.parts_.end() && at->begin < part.end; ++at) {
      if (at->begin > part.begin) result.parts_.push_back({part.begin, at->begin});
      part.begin = at->end;
    }
    if (part.end > part.begin) result.parts_.push_back(part);
  }
  return result;
}

Intervals Intervals::common_with(const Intervals& other) const { return without(without(other)); }

}  // namespace trireme::report
