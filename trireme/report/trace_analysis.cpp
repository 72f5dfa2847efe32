#include "trireme/report/trace_analysis.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "trireme/base/error.hpp"
#include "trireme/base/units.hpp"
#include "trireme/perf/statistics.hpp"
#include "trireme/report/trace_steps.hpp"

namespace trireme::report {
namespace {

using perf::SpanKind;

TimeRanges steps_as_moments(const StepsOfRank& rank) {
  std::vector<TimeRange> all;
  for (const TraceSpan* step : rank.steps) all.push_back({step->begin, step->end});
  return TimeRanges(std::move(all));
}

// When this rank was in a bucket that another had not begun.
TimeRanges waits_for_others(const TraceSteps& steps, std::size_t rank) {
  std::vector<TimeRange> all;
  for (std::size_t step = 0; step < steps.steps(); ++step) {
    for (std::int64_t bucket = 1; bucket <= steps.buckets(); ++bucket) {
      const TraceSpan* own = steps.exchange(rank, step, bucket).span;
      if (own == nullptr) continue;
      const std::size_t last = steps.last_to_begin(rank, step, bucket);
      all.push_back({own->begin, steps.exchange(last, step, bucket).span->begin});
    }
  }
  return TimeRanges(std::move(all));
}

// The work of one core group, or of all inter-op threads together, without waits for other groups.
struct GroupWork {
  TimeRanges compute, optimizer, barrier;
  TimeRanges all() const { return compute.united_with(optimizer); }
};

GroupWork work_of(const std::vector<const TraceThread*>& threads, const TimeRanges& steps) {
  GroupWork work;
  for (const TraceThread* thread : threads) {
    const TimeRanges barrier = moments(*thread, SpanKind::barrier);
    work.compute = work.compute.united_with(moments(*thread, SpanKind::compute).without(barrier));
    work.optimizer = work.optimizer.united_with(moments(*thread, SpanKind::optimizer).without(barrier));
    work.barrier = work.barrier.united_with(barrier);
  }
  work.compute = work.compute.common_with(steps);
  work.optimizer = work.optimizer.common_with(steps).without(work.compute);
  work.barrier = work.barrier.common_with(steps);
  return work;
}

std::vector<GroupWork> group_works(const StepsOfRank& rank, const TimeRanges& steps) {
  std::vector<GroupWork> groups;
  if (rank.groups.size() > 1) {
    for (const TraceThread* thread : rank.groups) groups.push_back(work_of({thread}, steps));
    return groups;
  }
  std::vector<const TraceThread*> all;
  for (const TraceThread& thread : rank.rank->threads) all.push_back(&thread);
  groups.push_back(work_of(all, steps));
  return groups;
}

TracedRank time_of(const TraceSteps& steps, std::size_t index) {
  const StepsOfRank& rank = steps.ranks()[index];
  const TimeRanges all = steps_as_moments(rank);
  const auto in_steps = [&](SpanKind kind) { return moments(*rank.rank, kind).common_with(all); };
  const std::vector<GroupWork> groups = group_works(rank, all);
  TimeRanges work;
  for (const GroupWork& group : groups) work = work.united_with(group.all());
  const TimeRanges input = in_steps(SpanKind::input), communication = in_steps(SpanKind::communication);
  const TimeRanges exposed = communication.without(work.united_with(input));
  const TimeRanges bubble = in_steps(SpanKind::bubble).without(work.united_with(input).united_with(exposed));
  const double count = static_cast<double>(rank.steps.size()), of_each = count * static_cast<double>(groups.size());
  TracedRank time{.rank = rank.rank->rank, .name = rank.rank->name};
  time.steps = std::ssize(rank.steps);
  time.step = all.length() / count;
  time.communication = communication.length() / count;
  time.exposed = exposed.length() / count;
  time.late_others = exposed.common_with(waits_for_others(steps, index)).length() / count;
  time.bubble = bubble.length() / count;
  if (time.communication > 0) time.overlap = 1 - time.exposed / time.communication;
  for (const GroupWork& group : groups) {
    const TimeRanges own = group.all(), own_or_input = own.united_with(input).united_with(exposed);
    const TimeRanges waits = work.united_with(group.barrier).without(own_or_input);
    time.compute += group.compute.length() / of_each;
    time.optimizer += group.optimizer.length() / of_each;
    time.input += input.without(own).length() / of_each;
    time.idle += all.without(own_or_input.united_with(waits).united_with(bubble)).length() / of_each;
    if (groups.size() > 1) time.groups_wait.push_back(waits.length() / count);
  }
  return time;
}

// The part of a step in which a rank does not wait for others is its own.
void add_straggling(const TraceSteps& steps, std::vector<TracedRank>& ranks) {
  std::vector<double> own;
  for (const StepsOfRank& rank : steps.ranks()) {
    const TimeRanges all = steps_as_moments(rank);
    const TimeRanges waits = moments(*rank.rank, SpanKind::waiting).united_with(moments(*rank.rank, SpanKind::bubble));
    own.push_back(all.without(waits).length() / static_cast<double>(rank.steps.size()));
  }
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    std::vector<double> others = own;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(rank));
    const double median = perf::median(others);
    if (median > 0) ranks[rank].straggling = own[rank] / median;
  }
}

void add_last_ones(const TraceSteps& steps, std::vector<TracedRank>& ranks) {
  if (steps.ranks().size() < 2) return;
  std::int64_t all = 0;
  for (std::size_t step = 0; step < steps.steps(); ++step) {
    for (std::int64_t bucket = 1; bucket <= steps.buckets(); ++bucket) {
      if (steps.exchange(0, step, bucket).span == nullptr) continue;
      ++all;
      const std::size_t last = steps.last_to_begin(0, step, bucket);
      const TraceSpan* span = steps.exchange(last, step, bucket).span;
      bool is_clear = true;
      for (std::size_t other = 0; other < ranks.size(); ++other) {
        const TraceSpan* theirs = steps.exchange(other, step, bucket).span;
        const double error = steps.ranks()[last].rank->clock_error + steps.ranks()[other].rank->clock_error;
        if (steps.ranks()[other].stage != steps.ranks()[last].stage) continue;
        if (other != last && (theirs == nullptr || span->begin - theirs->begin <= error)) is_clear = false;
      }
      if (is_clear) ranks[last].came_last += 1;
    }
  }
  for (TracedRank& rank : ranks) rank.came_last /= static_cast<double>(std::max<std::int64_t>(1, all));
}

std::vector<StageTime> stage_times(const TraceSteps& steps) {
  constexpr std::pair<const char*, double StageTime::*> kTasks[] = {
      {"forward", &StageTime::forward}, {"backward", &StageTime::backward}, {"weights", &StageTime::weights},
      {"reduce", &StageTime::reduce},   {"update", &StageTime::update},     {"bubble", &StageTime::bubble}};
  std::map<int, StageTime> stages;
  for (const StepsOfRank& rank : steps.ranks()) {
    if (rank.line == nullptr) continue;
    StageTime& time = stages[rank.stage];
    time.stage = rank.stage;
    ++time.workers;
    const TimeRanges all = steps_as_moments(rank);
    const auto count = static_cast<double>(rank.steps.size());
    time.step += all.length() / count;
    for (const auto& [name, part] : kTasks) {
      std::vector<TimeRange> moments;
      for (const TraceSpan& span : rank.line->spans) {
        if (span.name.substr(0, span.name.find(' ')) == name) moments.push_back({span.begin, span.end});
      }
      time.*part += TimeRanges(std::move(moments)).common_with(all).length() / count;
    }
  }
  std::vector<StageTime> times;
  for (auto& [stage, time] : stages) {
    time.step /= time.workers;
    for (const auto& [name, part] : kTasks) time.*part /= time.workers;
    times.push_back(time);
  }
  return times;
}

// Of a stage of a pipeline, or of all ranks.
void add_bucket_times(const TraceSteps& steps, int stage, std::vector<BucketTime>& buckets) {
  for (std::int64_t bucket = 1; bucket <= steps.buckets(); ++bucket) {
    BucketTime time{.bucket = bucket};
    std::vector<double> seconds;
    std::int64_t link_bytes = 0;
    for (std::size_t step = 0; step < steps.steps(); ++step) {
      for (std::size_t rank = 0; rank < steps.ranks().size(); ++rank) {
        const TraceSpan* span = steps.exchange(rank, step, bucket).span;
        if (span == nullptr || steps.ranks()[rank].stage != stage) continue;
        if (steps.last_to_begin(rank, step, bucket) != rank) continue;
        seconds.push_back(span->seconds());
        time.gradients = span->detail;
        time.peers = span->peers;
        time.bytes = span->bytes;
        link_bytes = span->link_bytes;
      }
    }
    if (seconds.empty()) continue;
    time.seconds = perf::median(seconds);
    if (time.seconds > 0) time.bus_bytes_per_second = static_cast<double>(link_bytes) / time.seconds;
    buckets.push_back(std::move(time));
  }
}

std::vector<OperationTime> operation_times(const TraceSteps& steps) {
  std::map<std::pair<std::string, std::string>, OperationTime> by_name;
  double all = 0, rank_steps = 0;
  for (const StepsOfRank& rank : steps.ranks()) {
    rank_steps += static_cast<double>(rank.steps.size());
    for (const TraceThread& thread : rank.rank->threads) {
      const TimeRanges barrier = moments(thread, SpanKind::barrier);
      for (const TraceSpan& span : thread.spans) {
        if (span.kind != SpanKind::compute && span.kind != SpanKind::optimizer) continue;
        const double seconds = TimeRanges({{span.begin, span.end}}).without(barrier).length();
        OperationTime& time = by_name[{span.name, span.detail}];
        time.seconds += seconds;
        ++time.spans;
        all += seconds;
      }
    }
  }
  std::vector<OperationTime> times;
  for (auto& [name, time] : by_name) {
    time.name = name.first;
    time.operation = name.second;
    time.share = all > 0 ? time.seconds / all : 0;
    time.seconds /= rank_steps;
    times.push_back(std::move(time));
  }
  std::ranges::stable_sort(times, std::ranges::greater{}, &OperationTime::seconds);
  return times;
}

std::vector<ServerTime> server_times(const TraceFile& trace, const TraceSteps& steps) {
  const TimeRanges all = steps_as_moments(steps.ranks().front());
  const TimeRange whole{all.parts().front().begin, all.parts().back().end};
  std::vector<ServerTime> servers;
  for (const TraceRank& rank : trace.ranks) {
    if (!rank.is_server || rank.is_lost) continue;
    const TimeRanges busy = moments(rank, SpanKind::optimizer).common_with(TimeRanges({whole}));
    ServerTime& server = servers.emplace_back();
    server.name = rank.name;
    server.busy = busy.length() / (whole.end - whole.begin);
    for (const TraceThread& thread : rank.threads) server.updates += std::ssize(thread.spans);
  }
  return servers;
}

std::vector<std::string> remarks_on(const TraceFile& trace, const TraceSteps& steps) {
  std::vector<std::string> remarks;
  double error = 0;
  for (const TraceRank& rank : trace.ranks) {
    error = std::max(error, rank.clock_error);
    if (rank.is_lost) remarks.push_back(fmt::format("{} was lost and is not in the trace", rank.name));
    if (rank.dropped > 0) {
      remarks.push_back(fmt::format("{}: {} spans did not fit and are missing here; trace fewer steps", rank.name,
                                    format_count(rank.dropped)));
    }
  }
  if (trace.ranks.size() > 1) remarks.push_back(fmt::format("clocks are aligned to {}", format_seconds(error)));
  for (const StepsOfRank& rank : steps.ranks()) {
    if (rank.steps.size() != steps.steps())
      remarks.push_back(fmt::format("{} has {} steps and another rank {}: ranks are compared over the latter",
                                    rank.rank->name, rank.steps.size(), steps.steps()));
  }
  return remarks;
}

}  // namespace

double TracedRank::mean_groups_wait() const { return groups_wait.empty() ? 0 : perf::summarize(groups_wait).mean; }

TraceAnalysis analyze(const TraceFile& trace) {
  const TraceSteps steps(trace);
  if (steps.steps() == 0) bad_input("the trace has no step that all ranks completed");
  TraceAnalysis analysis{.command = trace.command};
  for (std::size_t rank = 0; rank < steps.ranks().size(); ++rank) analysis.ranks.push_back(time_of(steps, rank));
  add_straggling(steps, analysis.ranks);
  add_last_ones(steps, analysis.ranks);
  analysis.stages = stage_times(steps);
  analysis.servers = server_times(trace, steps);
  std::set<int> stages;
  for (const StepsOfRank& rank : steps.ranks()) stages.insert(rank.stage);
  for (const int stage : stages) add_bucket_times(steps, stage, analysis.buckets);
  analysis.operations = operation_times(steps);
  std::vector<CriticalPath> paths;
  for (std::size_t step = 0; step < steps.steps(); ++step) paths.push_back(critical_path(steps, step));
  analysis.path = shares_of(paths);
  analysis.slowest_step = *std::ranges::max_element(paths, {}, &CriticalPath::seconds);
  analysis.remarks = remarks_on(trace, steps);
  return analysis;
}

}  // namespace trireme::report
