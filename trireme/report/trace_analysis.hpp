// Numbers from a trace: time breakdown of steps per rank, overlap, late ranks, critical path, slowest operations, speed
// of each gradient bucket. Printed by `trireme report --trace`; docs/tracing.md defines each.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trireme/report/trace_file.hpp"

namespace trireme::report {

// One worker; seconds per step; overlapping spans count once. Compute, optimizer, input, exposed, groups_wait, bubble
// and idle add up to the step: each moment counts for the first that applies. With several core groups they are means.
struct TracedRank {
  int rank = 0;
  std::string name = {};
  std::int64_t steps = 0;
  double step = 0;
  double compute = 0, optimizer = 0, input = 0;
  double communication = 0;              // gradients in transit, hidden or not, including waiting for other ranks
  double exposed = 0;                    // part of it with no compute, optimizer or input
  double late_others = 0;                // part of that in which another rank had not begun the bucket
  std::vector<double> groups_wait = {};  // [group]: waiting while other groups worked; empty: one group
  double bubble = 0;                     // a pipeline's stage waits for another
  double idle = 0;                       // none of these
  double overlap = 0;                    // 1 - exposed / communication; 0 without communication
  double straggling = 1;                 // non-waiting part of a step / median of the other ranks'
  double came_last = 0;                  // share of buckets it began last, by more than the clock error

  double mean_groups_wait() const;
};

// Of a pipeline: means over its workers, seconds per step. These add up to the step but for moments between spans.
struct StageTime {
  int stage = 0;
  int workers = 0;
  double step = 0;
  double forward = 0, backward = 0, weights = 0;  // weights: 0 if they are part of backward
  double reduce = 0, update = 0;
  double bubble = 0;

  double bubble_share() const { return step > 0 ? bubble / step : 0; }
};

struct ServerTime {
  std::string name = {};
  std::int64_t updates = 0;
  double busy = 0;  // share of time applying gradients, in any thread
};

// A bucket's time is that on the rank that came last: the others' includes waiting for it. If ranks do not meet in a
// bucket, each one's time counts. Medians over the steps.
struct BucketTime {
  std::int64_t bucket = 0;
  std::string gradients = {}, peers = {};
  std::int64_t bytes = 0;
  double seconds = 0;
  double bus_bytes_per_second = 0;  // minimum that a rank sends or receives for it / its time
};

struct OperationTime {
  std::string name = {}, operation = {};
  double seconds = 0;  // per step, mean over ranks
  double share = 0;    // of all operations
  std::int64_t spans = 0;
};

// The critical path of a step: the longest chain of what it waited for. Followed backward from the end of the step on
// the rank that ended last, through its main thread; where that waited for a bucket, to the rank that began the bucket
// last, and on. A piece is adjacent spans of one rank and kind; time between spans is "other".
struct PathPiece {
  int rank = 0;
  std::string kind = {};
  double begin = 0, seconds = 0;  // since the start of the path
  std::int64_t spans = 0;
  std::string longest = {};  // name of its longest span
};

struct CriticalPath {
  std::int64_t step = 0;
  double seconds = 0;
  std::vector<PathPiece> pieces = {};  // from the step's begin to its end
};

struct PathShare {
  int rank = 0;
  std::string kind = {};
  double share = 0;
};

struct TraceAnalysis {
  std::vector<std::string> command = {};
  std::vector<TracedRank> ranks = {};
  std::vector<StageTime> stages = {};
  std::vector<ServerTime> servers = {};
  std::vector<BucketTime> buckets = {};
  std::vector<OperationTime> operations = {};  // longest first
  std::vector<PathShare> path = {};            // over all steps, largest share first
  CriticalPath slowest_step = {};
  std::vector<std::string> remarks = {};  // caveats about the file
};

TraceAnalysis analyze(const TraceFile& trace);  // Error(bad_input) if it has no step
std::string to_text(const TraceAnalysis& analysis, std::size_t operations = 15);

}  // namespace trireme::report
