// The steps of a trace, rank by rank, with what each part of the analysis looks up: which spans belong to a step, and
// which bucket of one rank is the same as which of another. Made by analyze().
#pragma once

#include <vector>

#include "trireme/report/trace_analysis.hpp"
#include "trireme/report/trace_file.hpp"

namespace trireme::report {

// Sets of moments, as ranges that are sorted and apart: unions, differences, lengths. What counts twice in a sum of
// spans counts once here.
struct TimeRange {
  double begin = 0, end = 0;

  bool operator==(const TimeRange&) const = default;
};

class TimeRanges {
 public:
  TimeRanges() = default;
  explicit TimeRanges(std::vector<TimeRange> any);  // in any order, overlapping or not; empty ones count for nothing

  double length() const;
  const std::vector<TimeRange>& parts() const { return parts_; }

  TimeRanges united_with(const TimeRanges& other) const;
  TimeRanges without(const TimeRanges& other) const;
  TimeRanges common_with(const TimeRanges& other) const;

 private:
  std::vector<TimeRange> parts_;
};

// A worker.
struct StepsOfRank {
  const TraceRank* rank = nullptr;
  const TraceThread* main = nullptr;            // the thread that runs steps
  std::vector<const TraceSpan*> steps = {};     // in order
  std::vector<TraceSpan> main_work = {};        // spans of that thread other than steps, in order and apart: one that
                                                // lies in another cuts it in two
  std::vector<const TraceThread*> groups = {};  // the threads that run programs: main and those of other groups
};

// One bucket in one step on one rank.
struct Exchange {
  const TraceSpan* span = nullptr;
  const TraceThread* thread = nullptr;
};

class TraceSteps {
 public:
  explicit TraceSteps(const TraceFile& trace);  // keeps pointers into it

  const std::vector<StepsOfRank>& ranks() const { return ranks_; }
  std::size_t steps() const { return steps_; }  // that all ranks have
  std::int64_t buckets() const { return buckets_; }
  // Nothing where this rank has no such bucket in this step. Buckets count from 1.
  Exchange exchange(std::size_t rank, std::size_t step, std::int64_t bucket) const;
  // The rank that began with a bucket last, where all ranks were at it at the same time; else the one given.
  std::size_t last_to_begin(std::size_t rank, std::size_t step, std::int64_t bucket) const;
  // Index of the step in which a moment of this rank is; -1: between steps.
  int step_at(std::size_t rank, double time) const;

 private:
  void add_exchanges(std::size_t rank);

  std::vector<StepsOfRank> ranks_;
  std::size_t steps_ = 0;
  std::int64_t buckets_ = 0;
  std::vector<std::vector<std::vector<Exchange>>> exchanges_;  // [rank][step][bucket - 1]
};

// Spans of a kind on a thread, and on all threads of a rank.
TimeRanges moments(const TraceThread& thread, perf::SpanKind kind);
TimeRanges moments(const TraceRank& rank, perf::SpanKind kind);

CriticalPath critical_path(const TraceSteps& steps, std::size_t step);
// Of several paths together, the largest share first.
std::vector<PathShare> shares_of(const std::vector<CriticalPath>& paths);

}  // namespace trireme::report
