// Writes a trace for chrome://tracing and Perfetto: JSON with an event per span; processes are ranks, threads are
// tracks. Events are written as they come, so only one rank's spans are in memory; the file appears under its name when
// complete. Made by lab/bench/job_trace.hpp; read by report/trace_file.hpp.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "trireme/base/new_file.hpp"
#include "trireme/perf/recorder.hpp"
#include "trireme/record/run_record.hpp"

namespace trireme::report {

inline constexpr const char* kTraceSchema = "trireme.trace/1";

void check_trace_path(const std::string& path);  // call before a long run; Error(bad_input) if not writable

// Argument names for a span's number: "step", "bucket", "batch"; and for its detail: "operation", ...
std::string_view number_name(perf::SpanKind kind);
std::string_view detail_name(perf::SpanKind kind);

class TraceWriter {
 public:
  explicit TraceWriter(const std::string& path);

  void add_process(int rank, const std::string& name);
  void add_thread(int rank, int thread, const std::string& name);
  using ToFileTime = std::function<std::int64_t(std::int64_t)>;  // of nanoseconds; the file's start near 0
  void add_spans(int rank, int thread, std::span<const perf::Span> spans, std::span<const perf::SpanLabel> labels,
                 const ToFileTime& to_file_time);
  std::int64_t spans() const { return spans_; }
  void finish(const Json& other);  // adds `other` at the end

 private:
  void add_event(const Json& event);
  void flush_if(bool full);

  NewFile file_;
  std::string text_;  // not yet written
  bool first_ = true;
  std::int64_t spans_ = 0;
};

}  // namespace trireme::report
