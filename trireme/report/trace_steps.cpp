#include "trireme/report/trace_steps.hpp"

#include <algorithm>
#include <limits>

#include "trireme/base/parse.hpp"

namespace trireme::report {
namespace {

using perf::SpanKind;

// Ignores steps without duration: nothing could be a share of them.
bool is_step(const TraceSpan& span) { return span.kind == SpanKind::step && span.seconds() > 0; }

constexpr const char* kGroupThread = "group of cores ";
constexpr std::string_view kStageThread = "stage ";

// Spans nest. Pieces of an outer span left by inner ones keep the outer name.
std::vector<TraceSpan> cut_apart(const std::vector<const TraceSpan*>& spans) {
  std::vector<TraceSpan> pieces;
  std::vector<TraceSpan> open;  // the rest of each, innermost last
  const auto close_until = [&](double time) {
    while (!open.empty() && open.back().end <= time) {
      const double end = open.back().end;
      if (open.back().seconds() > 0) pieces.push_back(open.back());
      open.pop_back();
      if (!open.empty()) open.back().begin = std::max(open.back().begin, end);
    }
  };
  for (const TraceSpan* span : spans) {
    close_until(span->begin);
    if (!open.empty() && open.back().begin < span->begin) {
      pieces.push_back(open.back());
      pieces.back().end = span->begin;
      open.back().begin = span->begin;
    }
    open.push_back(*span);
  }
  close_until(std::numeric_limits<double>::infinity());
  return pieces;
}

StepsOfRank steps_of(const TraceRank& rank) {
  StepsOfRank steps{.rank = &rank};
  for (const TraceThread& thread : rank.threads) {
    if (std::ranges::none_of(thread.spans, is_step)) continue;
    steps.main = &thread;
    std::vector<const TraceSpan*> work;
    for (const TraceSpan& span : thread.spans) {
      if (is_step(span)) steps.steps.push_back(&span);
      if (span.kind != SpanKind::step) work.push_back(&span);
    }
    steps.main_work = cut_apart(work);
    steps.groups.push_back(&thread);
    break;
  }
  for (const TraceThread& thread : rank.threads) {
    if (thread.name.starts_with(kGroupThread)) steps.groups.push_back(&thread);
    if (!thread.name.starts_with(kStageThread)) continue;
    steps.line = &thread;
    steps.stage = parse_number<int>(std::string_view(thread.name).substr(kStageThread.size())).value_or(-1);
  }
  return steps;
}

}  // namespace

TraceSteps::TraceSteps(const TraceFile& trace) {
  std::size_t fewest = std::numeric_limits<std::size_t>::max();
  for (const TraceRank& rank : trace.ranks) {
    for (const TraceThread& thread : rank.threads) {
      for (const TraceSpan& span : thread.spans) {
        if (span.kind == SpanKind::communication) buckets_ = std::max(buckets_, span.number);
      }
    }
    if (rank.is_server || rank.is_lost) continue;
    ranks_.push_back(steps_of(rank));
    fewest = std::min(fewest, ranks_.back().steps.size());
  }
  steps_ = ranks_.empty() ? 0 : fewest;
  exchanges_.resize(ranks_.size());
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) add_exchanges(rank);
}

void TraceSteps::add_exchanges(std::size_t rank) {
  exchanges_[rank].assign(ranks_[rank].steps.size(), std::vector<Exchange>(static_cast<std::size_t>(buckets_)));
  for (const TraceThread& thread : ranks_[rank].rank->threads) {
    for (const TraceSpan& span : thread.spans) {
      if (span.kind != SpanKind::communication || span.number < 1) continue;
      const int step = step_at(rank, span.begin);
      if (step < 0) continue;
      exchanges_[rank][step][span.number - 1] = {&span, &thread};
    }
  }
}

int TraceSteps::step_at(std::size_t rank, double time) const {
  const auto& steps = ranks_[rank].steps;
  const auto after = std::upper_bound(steps.begin(), steps.end(), time,
                                      [](double moment, const TraceSpan* step) { return moment < step->begin; });
  if (after == steps.begin() || time > (*std::prev(after))->end) return -1;
  return static_cast<int>(after - steps.begin()) - 1;
}

Exchange TraceSteps::exchange(std::size_t rank, std::size_t step, std::int64_t bucket) const {
  if (step >= exchanges_[rank].size() || bucket < 1 || bucket > buckets_) return {};
  return exchanges_[rank][step][bucket - 1];
}

std::size_t TraceSteps::last_to_begin(std::size_t rank, std::size_t step, std::int64_t bucket) const {
  std::size_t last = rank;
  double latest = -std::numeric_limits<double>::infinity(), first_end = std::numeric_limits<double>::infinity();
  for (std::size_t other = 0; other < ranks_.size(); ++other) {
    if (ranks_[other].stage != ranks_[rank].stage) continue;  // they sum other gradients
    const TraceSpan* span = exchange(other, step, bucket).span;
    if (span == nullptr) return rank;
    first_end = std::min(first_end, span->end);
    if (span->begin <= latest) continue;
    latest = span->begin;
    last = other;
  }
  return latest < first_end ? last : rank;
}

TimeRanges moments(const TraceThread& thread, perf::SpanKind kind) {
  std::vector<TimeRange> all;
  for (const TraceSpan& span : thread.spans) {
    if (span.kind == kind) all.push_back({span.begin, span.end});
  }
  return TimeRanges(std::move(all));
}

TimeRanges moments(const TraceRank& rank, perf::SpanKind kind) {
  TimeRanges all;
  for (const TraceThread& thread : rank.threads) all = all.united_with(moments(thread, kind));
  return all;
}

TimeRanges::TimeRanges(std::vector<TimeRange> any) {
  std::erase_if(any, [](const TimeRange& part) { return !(part.end > part.begin); });
  std::ranges::sort(any, {}, &TimeRange::begin);
  for (const TimeRange& part : any) {
    if (!parts_.empty() && part.begin <= parts_.back().end) {
      parts_.back().end = std::max(parts_.back().end, part.end);
    } else {
      parts_.push_back(part);
    }
  }
}

double TimeRanges::length() const {
  double sum = 0;
  for (const TimeRange& part : parts_) sum += part.end - part.begin;
  return sum;
}

TimeRanges TimeRanges::united_with(const TimeRanges& other) const {
  std::vector<TimeRange> all = parts_;
  all.insert(all.end(), other.parts_.begin(), other.parts_.end());
  return TimeRanges(std::move(all));
}

TimeRanges TimeRanges::without(const TimeRanges& other) const {
  TimeRanges result;
  auto hole = other.parts_.begin();
  for (TimeRange part : parts_) {
    while (hole != other.parts_.end() && hole->end <= part.begin) ++hole;
    // The last hole may extend into the next part: look at it again.
    for (auto at = hole; at != other.parts_.end() && at->begin < part.end; ++at) {
      if (at->begin > part.begin) result.parts_.push_back({part.begin, at->begin});
      part.begin = at->end;
    }
    if (part.end > part.begin) result.parts_.push_back(part);
  }
  return result;
}

TimeRanges TimeRanges::common_with(const TimeRanges& other) const { return without(without(other)); }

}  // namespace trireme::report
