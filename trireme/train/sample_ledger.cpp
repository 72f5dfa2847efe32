#include "trireme/train/sample_ledger.hpp"

#include <algorithm>

namespace trireme::train {
namespace {

// The ranges in order, neighbours joined.
std::vector<data::PositionRange> joined(std::vector<data::PositionRange> ranges) {
  std::ranges::sort(ranges, {}, &data::PositionRange::begin);
  std::vector<data::PositionRange> all;
  for (const data::PositionRange& range : ranges) {
    if (range.begin == range.end) continue;
    if (!all.empty() && all.back().end == range.begin) {
      all.back().end = range.end;
    } else {
      all.push_back(range);
    }
  }
  return all;
}

}  // namespace

void SampleLedger::commit(const Update& update, std::span<const int> lost) {
  std::vector<data::PositionRange> unused;
  for (int part = 0; part < update.runs * update.workers; ++part) {
    const bool is_lost = std::ranges::find(lost, part % update.workers) != lost.end();
    for (std::int64_t left = update.batch; left > 0;) {
      if (leftover_.empty()) {
        if (is_lost) unused.push_back({next_, next_ + left});
        next_ += left;
        break;
      }
      data::PositionRange& first = leftover_.front();
      const std::int64_t taken = std::min(left, first.end - first.begin);
      if (is_lost) unused.push_back({first.begin, first.begin + taken});
      first.begin += taken;
      left -= taken;
      if (first.begin == first.end) leftover_.erase(leftover_.begin());
    }
  }
  unused.insert(unused.end(), leftover_.begin(), leftover_.end());
  leftover_ = joined(std::move(unused));
}

std::int64_t SampleLedger::used() const {
  std::int64_t used = next_;
  for (const data::PositionRange& range : leftover_) used -= range.end - range.begin;
  return used;
}

std::int64_t SampleLedger::done_before() const { return leftover_.empty() ? next_ : leftover_.front().begin; }

}  // namespace trireme::train
