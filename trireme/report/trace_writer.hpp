// Writes a trace in the format that chrome://tracing and Perfetto open: JSON with one event per span. Processes are the
// ranks of a job, threads its tracks. Events go to the file as they come, so that the spans of one rank at a time need
// memory; the file appears under its name when it is complete. Made by lab/job_trace.hpp; read by
// report/trace_file.hpp.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "trireme/base/new_file.hpp"
#include "trireme/perf/recorder.hpp"
#include "trireme/report/run_record.hpp"

namespace trireme::report {

inline constexpr const char* kTraceSchema = "trireme.trace/1";

// Throws Error(bad_input) where no trace could be written there. To be called before a long run.
void check_trace_path(const std::string& path);

// Names of the arguments of events.
std::string_view number_name(perf::SpanKind kind);  // "step", "bucket", "batch"; what a span's number means

class TraceWriter {
 public:
  explicit TraceWriter(const std::string& path);

  void add_process(int rank, const std::string& name);
  void add_thread(int rank, int thread, const std::string& name);
  // Nanoseconds to those of the file, which begin near 0.
  using ToFileTime = std::function<std::int64_t(std::int64_t)>;
  void add_spans(int rank, int thread, std::span<const perf::Span> spans, std::span<const perf::SpanLabel> labels,
                 const ToFileTime& to_file_time);
  std::int64_t spans() const { return spans_; }
  // What else is known goes to the end.
  void finish(const Json& other);

 private:
  void add_event(const Json& event);
  void flush_if(bool full);

  NewFile file_;
  std::string text_;  // not written yet
  bool first_ = true;
  std::int64_t spans_ = 0;
};

}  // namespace trireme::report
