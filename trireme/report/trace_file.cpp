#include "trireme/report/trace_file.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include "trireme/base/error.hpp"
#include "trireme/base/json.hpp"
#include "trireme/report/trace_writer.hpp"

namespace trireme::report {
namespace {

constexpr std::int64_t kMostBuckets = 100'000;  // limits a table; networks have fewer
constexpr std::int64_t kAny = std::numeric_limits<std::int64_t>::max();

std::optional<perf::SpanKind> kind_of(const std::string& category) {
  for (int kind = 0; kind < perf::kSpanKinds; ++kind) {
    if (category == perf::to_string(static_cast<perf::SpanKind>(kind))) return static_cast<perf::SpanKind>(kind);
  }
  return std::nullopt;
}

double microseconds_of(const Json& event, const char* key) {
  const double value = event.at(key).get<double>();
  if (!std::isfinite(value)) bad_input("\"{}\" is not a number", key);
  return value;
}

// 0 if absent.
std::int64_t count_of(const Json& arguments, std::string_view key, std::int64_t most) {
  const Json value = field(arguments, {std::string(key).c_str()});
  if (value.is_null()) return 0;
  if (!value.is_number_integer() || value < 0 || value > most) {
    bad_input("\"{}\" is {}; it must be a whole number from 0 to {}", key, value.dump(), most);
  }
  return value.get<std::int64_t>();
}

TraceSpan span_from(const Json& event) {
  TraceSpan span;
  span.name = event.at("name");
  const std::string category = event.at("cat");
  const auto kind = kind_of(category);
  if (!kind) bad_input("unknown category '{}'", category);
  span.kind = *kind;
  span.begin = microseconds_of(event, "ts") / 1e6;
  const double duration = microseconds_of(event, "dur");
  if (duration < 0) bad_input("it lasts {} microseconds", duration);
  span.end = span.begin + duration / 1e6;
  const Json arguments = event.value("args", Json::object());
  span.detail = arguments.value(std::string(detail_name(span.kind)), "");
  span.peers = arguments.value("peers", "");
  const bool is_bucket = span.kind == perf::SpanKind::communication;
  span.number = count_of(arguments, number_name(span.kind), is_bucket ? kMostBuckets : kAny);
  span.bytes = count_of(arguments, "bytes", kAny);
  span.link_bytes = count_of(arguments, "link_bytes", kAny);
  return span;
}

class Reader {
 public:
  explicit Reader(TraceFile& file) : file_(file) {}

  void add_ranks(const Json& facts) {
    const int workers = facts.at("workers");
    for (const Json& rank : facts.at("ranks")) {
      TraceRank& added = file_.ranks.emplace_back();
      added.rank = rank.at("rank");
      added.name = rank.at("name");
      added.is_server = added.rank >= workers;
      added.is_lost = rank.at("lost");
      added.dropped = rank.at("dropped_spans");
      added.clock_error = rank.at("clock_error_us").get<double>() / 1e6;
      by_rank_[added.rank] = file_.ranks.size() - 1;
    }
  }

  void add_event(const Json& event) {
    const std::string phase = event.at("ph");
    if (phase == "M" && event.at("name") == "thread_name") thread_of(event).name = event.at("args").at("name");
    if (phase == "X") thread_of(event).spans.push_back(span_from(event));
  }

  void sort() {
    for (TraceRank& rank : file_.ranks) {
      std::ranges::sort(rank.threads, {}, &TraceThread::id);
      for (TraceThread& thread : rank.threads) {
        std::ranges::stable_sort(thread.spans, [](const TraceSpan& a, const TraceSpan& b) {
          return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
        });
      }
    }
  }

 private:
  TraceThread& thread_of(const Json& event) {
    const int rank = event.at("pid"), id = event.at("tid");
    const auto found = by_rank_.find(rank);
    if (found == by_rank_.end()) bad_input("rank {} is not listed in \"otherData\"", rank);
    std::vector<TraceThread>& threads = file_.ranks[found->second].threads;
    const auto thread = std::ranges::find(threads, id, &TraceThread::id);
    if (thread != threads.end()) return *thread;
    return threads.emplace_back(TraceThread{.id = id});
  }

  TraceFile& file_;
  std::map<int, std::size_t> by_rank_;
};

// Adds what was being read to JSON errors.
template <typename Body>
void reading(const std::string& name, const std::string& what, const Body& body) {
  try {
    body();
  } catch (const Json::exception& error) {
    bad_input("{}: {} is broken: {}", name, what, error.what());
  } catch (const Error& error) {
    bad_input("{}: {} is broken: {}", name, what, error.what());
  }
}

}  // namespace

TraceFile parse_trace(const Json& json, const std::string& name) {
  const bool is_ours = json.is_object() && json.contains("otherData") && json["otherData"].is_object() &&
                       json["otherData"].value("schema", Json()) == kTraceSchema;
  if (!is_ours) {
    bad_input("{}: not a trace of this program: \"otherData\" has no \"schema\": \"{}\"; `bench --trace` writes one",
              name, kTraceSchema);
  }
  TraceFile file;
  Reader reader(file);
  reading(name, "\"otherData\"", [&] {
    json["otherData"].at("command").get_to(file.command);
    reader.add_ranks(json["otherData"]);
  });
  if (!json.contains("traceEvents") || !json["traceEvents"].is_array()) {
    bad_input("{}: it has no list \"traceEvents\"", name);
  }
  std::size_t index = 0;
  for (const Json& event : json["traceEvents"]) {
    reading(name, fmt::format("event {} of \"traceEvents\"", ++index), [&] { reader.add_event(event); });
  }
  reader.sort();
  return file;
}

TraceFile read_trace(const std::string& path) { return parse_trace(read_json(path), path); }

}  // namespace trireme::report
