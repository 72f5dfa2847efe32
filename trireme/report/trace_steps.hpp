// The steps of a trace by rank, with the spans of each and matching buckets of other ranks. Made by analyze().
#pragma once

#include <vector>

#include "trireme/report/trace_analysis.hpp"
#include "trireme/report/trace_file.hpp"

namespace trireme::report {

// Sets of moments as sorted, disjoint ranges: unions, differences, lengths. Overlapping spans count once.
struct TimeRange {
  double begin = 0, end = 0;

  bool operator==(const TimeRange&) const = default;
};

class TimeRanges {
 public:
  TimeRanges() = default;
  explicit TimeRanges(std::vector<TimeRange> any);  // in any order, may overlap; empty ones are ignored

  double length() const;
  const std::vector<TimeRange>& parts() const { return parts_; }

  TimeRanges united_with(const TimeRanges& other) const;
  TimeRanges without(const TimeRanges& other) const;
  TimeRanges common_with(const TimeRanges& other) const;

 private:
  std::vector<TimeRange> parts_;
};

// One worker.
struct StepsOfRank {
  const TraceRank* rank = nullptr;
  int stage = -1;                            // of a pipeline
  const TraceThread* main = nullptr;         // the thread that runs steps
  std::vector<const TraceSpan*> steps = {};  // in order
  std::vector<TraceSpan> main_work = {};  // spans of that thread except steps, sorted and disjoint: a nested span cuts
                                          // its parent in two
  std::vector<const TraceThread*> groups = {};  // threads that run programs: main and those of other groups
  const TraceThread* line = nullptr;            // the stage's
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
  Exchange exchange(std::size_t rank, std::size_t step, std::int64_t bucket) const;  // empty if none; buckets from 1
  // The rank that began a bucket last if all ranks, of one stage, overlapped in it; else `rank`.
  std::size_t last_to_begin(std::size_t rank, std::size_t step, std::int64_t bucket) const;
  int step_at(std::size_t rank, double time) const;  // index of the step at that time; -1: between steps

 private:
  void add_exchanges(std::size_t rank);

  std::vector<StepsOfRank> ranks_;
  std::size_t steps_ = 0;
  std::int64_t buckets_ = 0;
  std::vector<std::vector<std::vector<Exchange>>> exchanges_;  // [rank][step][bucket - 1]
};

// Spans of a kind on a thread, or on all threads of a rank.
TimeRanges moments(const TraceThread& thread, perf::SpanKind kind);
TimeRanges moments(const TraceRank& rank, perf::SpanKind kind);

CriticalPath critical_path(const TraceSteps& steps, std::size_t step);
std::vector<PathShare> shares_of(const std::vector<CriticalPath>& paths);  // largest share first

}  // namespace trireme::report
