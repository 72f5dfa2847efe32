// Reads a trace written by report/trace_writer.hpp. Used by the analysis.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trireme/perf/recorder.hpp"
#include "trireme/record/run_record.hpp"

namespace trireme::report {

struct TraceSpan {
  double begin = 0, end = 0;  // seconds
  perf::SpanKind kind = perf::SpanKind::compute;
  std::string name = {}, detail = {}, peers = {};
  std::int64_t number = 0, bytes = 0, link_bytes = 0;  // see perf::SpanLabel and perf::Span; 0: none

  double seconds() const { return end - begin; }
};

struct TraceThread {
  int id = 0;
  std::string name = {};
  std::vector<TraceSpan> spans = {};  // sorted by begin; of equal begins the longest first
};

struct TraceRank {
  int rank = 0;
  std::string name = {};
  bool is_server = false, is_lost = false;
  std::int64_t dropped = 0;  // spans that found no room
  double clock_error = 0;    // maximum error of its times relative to rank 0, seconds
  std::vector<TraceThread> threads = {};
};

struct TraceFile {
  std::vector<std::string> command = {};
  std::vector<TraceRank> ranks = {};  // workers, then servers
};

TraceFile read_trace(const std::string& path);  // Error(bad_input) names file, problem and place
TraceFile parse_trace(const Json& json, const std::string& name);

}  // namespace trireme::report
