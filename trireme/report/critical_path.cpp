// The critical path of a step.
#include <algorithm>
#include <cmath>
#include <map>

#include "trireme/report/trace_steps.hpp"

namespace trireme::report {
namespace {

using perf::SpanKind;

// Shorter gaps between spans are handover from one to the next.
constexpr double kHandOver = 50e-6;

struct Link {
  std::size_t rank = 0;
  std::string kind, name;
  double begin = 0, end = 0;
};

class PathWalk {
 public:
  PathWalk(const TraceSteps& steps, std::size_t step) : steps_(steps), step_(step) {
    for (std::size_t rank = 0; rank < steps.ranks().size(); ++rank) {
      if (span_of(rank).end > span_of(rank_).end) rank_ = rank;
    }
    time_ = end_ = span_of(rank_).end;
  }

  // Walks from the end to the beginning.
  std::vector<Link> walk() {
    while (time_ > span_of(rank_).begin) go_back();
    return std::move(links_);
  }

 private:
  const TraceSpan& span_of(std::size_t rank) const { return *steps_.ranks()[rank].steps[step_]; }

  void add(const std::string& kind, double begin, const std::string& name) {
    begin = std::max(begin, span_of(rank_).begin);
    if (begin < time_) links_.push_back({rank_, kind, name, begin, links_.empty() ? end_ : time_});
    time_ = begin;
  }

  // Time without work. A short pause joins what follows it or, at the end of the step, what precedes it.
  void add_pause(const std::string& kind, double begin, const std::string& name) {
    if (time_ - begin > kHandOver) return add(kind, begin, name);
    time_ = std::max(begin, span_of(rank_).begin);
    if (!links_.empty()) links_.back().begin = time_;
  }

  const TraceSpan* last_on_main() const {
    const auto& work = steps_.ranks()[rank_].main_work;
    const auto after = std::ranges::lower_bound(work, time_, {}, &TraceSpan::begin);
    return after == work.begin() ? nullptr : &*std::prev(after);
  }

  void go_back() {
    const TraceSpan* last = last_on_main();
    const double step_begin = span_of(rank_).begin;
    if (last == nullptr || last->end <= step_begin) return add_pause("other", step_begin, "");
    if (last->end < time_) return add_pause("other", last->end, "");
    const std::string kind(perf::to_string(last->kind));
    if (last->kind != SpanKind::waiting && last->kind != SpanKind::barrier) {
      add(kind, last->begin, last->name);
    } else if (!follow(*last)) {
      add_pause(kind, last->begin, last->name);
    }
  }

  // Continues through what the wait was for. False: unknown.
  bool follow(const TraceSpan& wait) {
    const TraceSpan* cause = nullptr;
    for (const TraceThread& thread : steps_.ranks()[rank_].rank->threads) {
      if (&thread == steps_.ranks()[rank_].main) continue;
      for (const TraceSpan& span : thread.spans) {
        const bool ends_wait = span.end > wait.begin && span.end <= wait.end + kHandOver && span.begin < time_;
        const bool is_work =
            span.kind == SpanKind::communication || span.kind == SpanKind::compute || span.kind == SpanKind::optimizer;
        const bool is_meant = wait.number == 0 || (span.kind == SpanKind::communication && span.number == wait.number);
        if (ends_wait && is_work && is_meant && (cause == nullptr || span.end > cause->end)) cause = &span;
      }
    }
    if (cause == nullptr) return false;
    const double before_it = time_;
    if (cause->kind == SpanKind::communication) {
      follow_bucket(*cause);  // no effect if another rank began it after this moment
    } else {
      add(std::string(perf::to_string(cause->kind)), cause->begin, cause->name);
    }
    return time_ < before_it;
  }

  // Buckets that follow each other directly form one chain.
  void follow_bucket(const TraceSpan& span) {
    Exchange at{.span = &span};
    while (at.span != nullptr) {
      const int step = steps_.step_at(rank_, at.span->begin);
      std::size_t last = rank_;
      if (step >= 0) {
        const auto index = static_cast<std::size_t>(step);
        last = steps_.last_to_begin(rank_, index, at.span->number);
        at = steps_.exchange(last, index, at.span->number);
      }
      if (at.span == nullptr || at.span->begin >= time_) return;
      add("communication", at.span->begin, at.span->name);
      rank_ = last;
      at = before(at);
    }
  }

  // The bucket at whose end this one began, on the same thread.
  Exchange before(const Exchange& exchange) const {
    if (exchange.thread == nullptr || time_ <= span_of(rank_).begin) return {};
    const auto& spans = exchange.thread->spans;
    const auto found = std::find_if(spans.rbegin(), spans.rend(), [&](const TraceSpan& span) {
      return span.kind == SpanKind::communication && span.begin < exchange.span->begin &&
             std::abs(span.end - exchange.span->begin) < kHandOver;
    });
    return found == spans.rend() ? Exchange{} : Exchange{&*found, exchange.thread};
  }

  const TraceSteps& steps_;
  std::size_t step_;
  std::size_t rank_ = 0;
  double time_ = 0, end_ = 0;
  std::vector<Link> links_;
};

}  // namespace

CriticalPath critical_path(const TraceSteps& steps, std::size_t step) {
  std::vector<Link> links = PathWalk(steps, step).walk();
  std::ranges::reverse(links);
  CriticalPath path{.step = steps.ranks().front().steps[step]->number};
  if (links.empty()) return path;
  const double origin = links.front().begin;
  double longest = 0;
  for (const Link& link : links) {
    const int rank = steps.ranks()[link.rank].rank->rank;
    if (path.pieces.empty() || path.pieces.back().rank != rank || path.pieces.back().kind != link.kind) {
      path.pieces.push_back({.rank = rank, .kind = link.kind, .begin = link.begin - origin});
      longest = 0;
    }
    PathPiece& piece = path.pieces.back();
    piece.seconds += link.end - link.begin;
    ++piece.spans;
    if (link.end - link.begin > longest) {
      longest = link.end - link.begin;
      piece.longest = link.name;
    }
  }
  path.seconds = links.back().end - origin;
  return path;
}

std::vector<PathShare> shares_of(const std::vector<CriticalPath>& paths) {
  std::map<std::pair<int, std::string>, double> seconds;
  double all = 0;
  for (const CriticalPath& path : paths) {
    for (const PathPiece& piece : path.pieces) {
      seconds[{piece.rank, piece.kind}] += piece.seconds;
      all += piece.seconds;
    }
  }
  std::vector<PathShare> shares;
  for (const auto& [of, sum] : seconds) shares.push_back({of.first, of.second, sum / all});
  std::ranges::stable_sort(shares, std::ranges::greater{}, &PathShare::share);
  return shares;
}

}  // namespace trireme::report
