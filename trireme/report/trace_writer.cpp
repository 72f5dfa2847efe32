#include "trireme/report/trace_writer.hpp"

#include <algorithm>
#include <iterator>

namespace trireme::report {
namespace {

constexpr std::size_t kFlushBytes = 1 << 20;

std::string quoted(const std::string& text) { return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace); }

// Common to all events of a label: "name":…,"cat":…, and the start of the arguments.
struct EventText {
  std::string head, arguments;
};

EventText text_of(const perf::SpanLabel& label) {
  EventText text;
  text.head = fmt::format(R"("name":{},"cat":"{}")", quoted(label.name), perf::to_string(label.kind));
  if (!label.detail.empty()) {
    text.arguments += fmt::format(R"(,"{}":{})", detail_name(label.kind), quoted(label.detail));
  }
  if (label.bytes > 0) text.arguments += fmt::format(R"(,"bytes":{})", label.bytes);
  if (label.link_bytes > 0) text.arguments += fmt::format(R"(,"link_bytes":{})", label.link_bytes);
  if (!label.peers.empty()) text.arguments += fmt::format(R"(,"peers":{})", quoted(label.peers));
  return text;
}

}  // namespace

void check_trace_path(const std::string& path) {
  constexpr const char* kAdvice = "give a file in an existing, writable folder";
  if (path.empty() || path == "-") bad_input("--trace '{}': must be a file; {}", path, kAdvice);
  check_can_make(path, "--trace: ", kAdvice);
}

std::string_view number_name(perf::SpanKind kind) {
  if (kind == perf::SpanKind::step) return "step";
  return kind == perf::SpanKind::input || kind == perf::SpanKind::decode ? "batch" : "bucket";
}

std::string_view detail_name(perf::SpanKind kind) {
  if (kind == perf::SpanKind::communication) return "gradients";
  return kind == perf::SpanKind::bubble ? "waits for" : "operation";
}

TraceWriter::TraceWriter(const std::string& path) : file_(path) { text_ = "{\"traceEvents\":[\n"; }

void TraceWriter::flush_if(bool full) {
  if (!full) return;
  file_.write(text_);
  text_.clear();
}

void TraceWriter::add_event(const Json& event) {
  if (!first_) text_ += ",\n";
  first_ = false;
  text_ += event.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void TraceWriter::add_process(int rank, const std::string& name) {
  add_event({{"ph", "M"}, {"name", "process_name"}, {"pid", rank}, {"args", {{"name", name}}}});
  add_event({{"ph", "M"}, {"name", "process_sort_index"}, {"pid", rank}, {"args", {{"sort_index", rank}}}});
}

void TraceWriter::add_thread(int rank, int thread, const std::string& name) {
  const auto add = [&](const char* event, const Json& arguments) {
    add_event({{"ph", "M"}, {"pid", rank}, {"tid", thread}, {"name", event}, {"args", arguments}});
  };
  add("thread_name", {{"name", name}});
  add("thread_sort_index", {{"sort_index", thread}});
}

void TraceWriter::add_spans(int rank, int thread, std::span<const perf::Span> spans,
                            std::span<const perf::SpanLabel> labels, const ToFileTime& to_file_time) {
  std::vector<EventText> texts;
  for (const perf::SpanLabel& label : labels) texts.push_back(text_of(label));
  for (const perf::Span& span : spans) {
    const auto index = static_cast<std::size_t>(span.label);
    const EventText& text = texts.at(index);
    const std::int64_t begin = to_file_time(span.begin), end = std::max(begin, to_file_time(span.end));
    std::string arguments = text.arguments;
    if (span.number > 0) arguments += fmt::format(R"(,"{}":{})", number_name(labels[index].kind), span.number);
    if (!arguments.empty()) arguments.erase(0, 1);
    fmt::format_to(std::back_inserter(text_),
                   R"({}{{{},"ph":"X","ts":{:.3f},"dur":{:.3f},"pid":{},"tid":{},"args":{{{}}}}})", first_ ? "" : ",\n",
                   text.head, static_cast<double>(begin) / 1e3, static_cast<double>(end - begin) / 1e3, rank, thread,
                   arguments);
    first_ = false;
    ++spans_;
    flush_if(text_.size() > kFlushBytes);
  }
}

void TraceWriter::finish(const Json& other) {
  text_ += fmt::format("\n],\n\"displayTimeUnit\":\"ms\",\n\"otherData\":{}\n}}\n",
                       other.dump(1, ' ', false, Json::error_handler_t::replace));
  flush_if(true);
  file_.commit();
}

}  // namespace trireme::report
