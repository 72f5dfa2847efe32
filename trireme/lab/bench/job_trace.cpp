#include "trireme/lab/bench/job_trace.hpp"

#include <algorithm>
#include <chrono>
#include <limits>

#include "trireme/base/error.hpp"
#include "trireme/base/units.hpp"
#include "trireme/report/trace_writer.hpp"

namespace trireme::perf {
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(SpanLabel, name, kind, detail, bytes, link_bytes, peers)
}  // namespace trireme::perf

namespace trireme::lab {
namespace {

using nlohmann::json;

constexpr int kClockTag = 0, kTraceTag = 1;
// A rank may still measure or write results while others are done.
constexpr auto kPatience = std::chrono::minutes(10);

// Enough for networks of thousands of operations. The rest is dropped and counted.
std::size_t spans_for(std::int64_t steps) {
  constexpr std::int64_t kPerStep = 4096, kLeast = 1 << 14, kMost = 1 << 20;
  return static_cast<std::size_t>(std::clamp(std::min(steps, kMost) * kPerStep, kLeast, kMost));
}

void send_text(comm::Communicator& communicator, const std::string& text) {
  const std::uint64_t length = text.size();
  communicator.send(std::as_bytes(std::span(&length, 1)), 0, kTraceTag);
  communicator.send(std::as_bytes(std::span(text)), 0, kTraceTag);
}

std::string receive_text(comm::Communicator& communicator, int from) {
  std::uint64_t length = 0;
  communicator.receive(std::as_writable_bytes(std::span(&length, 1)), from, kTraceTag);
  std::string text(length, '\0');
  communicator.receive(std::as_writable_bytes(std::span(text)), from, kTraceTag);
  return text;
}

}  // namespace

JobTrace::JobTrace(comm::Communicator& members, int workers, std::int64_t steps)
    : members_(members.split(0, members.rank())),
      workers_(workers),
      started_(record::rfc3339(std::chrono::system_clock::now())),
      known_(members.size()),
      recorder_(spans_for(steps)) {
  recorder_.track(perf::Recorder::kMainTrack);  // first in the file
  members_->set_timeout(kPatience);
  members_->set_context("comparing clocks for the trace");
  if (is_first()) {
    measure_clocks(&Member::begin);
  } else {
    comm::answer_clock_questions(*members_, 0, kClockTag);
  }
}

JobTrace::~JobTrace() = default;

// Ranks of one machine share a clock, unless measurements say otherwise.
void JobTrace::measure_clocks(comm::ClockOffset Member::*when) {
  for (int rank = 1; rank < members_->size(); ++rank) {
    Member& member = known_[rank];
    member.is_lost = members_->presence(rank) != comm::Presence::here;
    if (member.is_lost) continue;
    comm::ClockOffset measured = comm::measure_clock_offset(*members_, rank, kClockTag);
    const bool same_node = members_->members()[rank].node == members_->self().node;
    if (same_node && std::abs(measured.offset) <= measured.round_trip) measured.offset = 0;
    member.*when = measured;
  }
}

std::int64_t JobTrace::first_begin() const {
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  for (const perf::Track& track : recorder_.tracks()) {
    for (const perf::Span& span : track.spans()) first = std::min(first, span.begin);
  }
  return first;
}

std::string JobTrace::description() const {
  json tracks = json::array();
  for (const perf::Track& track : recorder_.tracks()) {
    tracks.push_back({{"name", track.name()}, {"spans", track.spans().size()}, {"dropped", track.dropped()}});
  }
  const json all{{"labels", recorder_.labels()}, {"tracks", std::move(tracks)}};
  return all.dump(-1, ' ', false, json::error_handler_t::replace);
}

void JobTrace::answer() {
  comm::answer_clock_questions(*members_, 0, kClockTag);
  const std::int64_t first = first_begin();
  members_->send(std::as_bytes(std::span(&first, 1)), 0, kTraceTag);
  send_text(*members_, description());
  for (const perf::Track& track : recorder_.tracks()) {
    const std::vector<perf::Span> spans = track.spans();
    members_->send(std::as_bytes(std::span(spans)), 0, kTraceTag);
  }
}

std::int64_t JobTrace::write_own(report::TraceWriter& writer, std::int64_t origin) {
  std::int64_t dropped = 0;
  int thread = 0;
  for (const perf::Track& track : recorder_.tracks()) {
    if (!track.spans().empty()) writer.add_thread(0, thread, track.name());
    writer.add_spans(0, thread++, track.spans(), recorder_.labels(), [&](std::int64_t time) { return time - origin; });
    dropped += track.dropped();
  }
  return dropped;
}

std::int64_t JobTrace::write_other(report::TraceWriter& writer, int rank, std::int64_t origin) {
  const Member& member = known_[rank];
  const json all = json::parse(receive_text(*members_, rank));
  const std::vector<perf::SpanLabel> labels = all.at("labels");
  std::int64_t dropped = 0;
  int thread = 0;
  for (const json& track : all.at("tracks")) {
    std::vector<perf::Span> spans(track.at("spans").get<std::size_t>());
    members_->receive(std::as_writable_bytes(std::span(spans)), rank, kTraceTag);
    if (!spans.empty()) writer.add_thread(rank, thread, track.at("name"));
    writer.add_spans(rank, thread++, spans, labels,
                     [&](std::int64_t time) { return comm::to_own_clock(time, member.begin, member.end) - origin; });
    dropped += track.at("dropped").get<std::int64_t>();
  }
  return dropped;
}

std::string JobTrace::name_of(int rank) const {
  const comm::Member& member = members_->members()[rank];
  return fmt::format("{} {} on {}", rank < workers_ ? "rank" : "ps", rank < workers_ ? rank : rank - workers_,
                     member.host);
}

Json JobTrace::facts(const std::vector<std::int64_t>& dropped) const {
  Json ranks = Json::array();
  for (std::size_t rank = 0; rank < known_.size(); ++rank) {
    const Member& member = known_[rank];
    const auto microseconds = [](std::int64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1e3; };
    ranks.push_back({{"rank", rank},
                     {"name", name_of(static_cast<int>(rank))},
                     {"lost", member.is_lost},
                     {"dropped_spans", dropped[rank]},
                     {"clock_offset_us", microseconds(member.end.offset)},
                     {"clock_drift_us", microseconds(member.end.offset - member.begin.offset)},
                     {"clock_error_us", microseconds(std::max(member.begin.round_trip, member.end.round_trip) / 2)}});
  }
  return {{"schema", report::kTraceSchema},
          {"command", record::command_line()},
          {"started", started_},
          {"workers", workers_},
          {"ranks", std::move(ranks)}};
}

std::string JobTrace::write(const std::string& path) {
  recorder_.set_recording(false);
  members_->set_context("collecting the trace");
  if (!is_first()) {
    answer();
    return "";
  }
  measure_clocks(&Member::end);
  std::int64_t origin = first_begin();
  for (int rank = 1; rank < members_->size(); ++rank) {
    const Member& member = known_[rank];
    if (member.is_lost) continue;
    std::int64_t first = 0;
    members_->receive(std::as_writable_bytes(std::span(&first, 1)), rank, kTraceTag);
    if (first != std::numeric_limits<std::int64_t>::max())
      origin = std::min(origin, comm::to_own_clock(first, member.begin, member.end));
  }
  report::TraceWriter writer(path);
  std::vector<std::int64_t> dropped(known_.size());
  for (int rank = 0; rank < members_->size(); ++rank) {
    writer.add_process(rank, name_of(rank));
    if (known_[rank].is_lost) continue;
    dropped[rank] = rank == 0 ? write_own(writer, origin) : write_other(writer, rank, origin);
  }
  writer.finish(facts(dropped));
  std::string line = fmt::format("trace: {} ({} spans); open it in ui.perfetto.dev, or `trireme report --trace {}`",
                                 path, format_count(writer.spans()), path);
  std::int64_t all_dropped = 0;
  for (const std::int64_t each : dropped) all_dropped += each;
  if (all_dropped > 0)
    line += fmt::format("\ntrace: {} spans did not fit; use fewer --trace-steps", format_count(all_dropped));
  return line;
}

}  // namespace trireme::lab
