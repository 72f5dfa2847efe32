// Numbers from a trace: where the time of a step goes on each rank, what hides behind what, who is late, what the steps
// waited for, which operations take longest, how fast each bucket of gradients travels. `trireme report --trace` prints
// them. docs/tracing.md says what each means.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trireme/report/trace_file.hpp"

namespace trireme::report {

// Of one worker; seconds per step. What goes on twice at a moment counts once. Compute, optimizer, input, exposed,
// groups_wait and idle add up to the step: a moment counts for the first of them that applies. With several groups of
// cores they are the mean over the groups.
struct TracedRank {
  int rank = 0;
  std::string name = {};
  std::int64_t steps = 0;
  double step = 0;
  double compute = 0, optimizer = 0, input = 0;
  double communication = 0;              // gradients were on their way, hidden or not, waiting for other ranks included
  double exposed = 0;                    // part of it during which nothing was computed, applied or brought in
  double late_others = 0;                // part of that in which another rank had not even begun with the bucket
  std::vector<double> groups_wait = {};  // [group]: it waited while other groups worked; empty: there is one group
  double idle = 0;                       // nothing of all this
  double overlap = 0;                    // 1 - exposed / communication; 0 without communication
  double straggling = 1;  // the part of a step in which it does not wait, by the median of the other ranks'
  double came_last = 0;   // share of the buckets that it began last, by more than clocks may be off

  double mean_groups_wait() const;
};

struct ServerTime {
  std::string name = {};
  std::int64_t updates = 0;
  double busy = 0;  // share of the time in which it applied gradients, in any thread
};

// A bucket's time is that on the rank that came to it last: on the others it includes waiting for that one. Where ranks
// do not meet in it, each one's time counts. Medians over the steps.
struct BucketTime {
  std::int64_t bucket = 0;
  std::string gradients = {}, peers = {};
  std::int64_t bytes = 0;
  double seconds = 0;
  double bus_bytes_per_second = 0;  // what a rank sends or receives because of it at least, by its time
};

struct OperationTime {
  std::string name = {}, operation = {};
  double seconds = 0;  // per step, the mean over ranks
  double share = 0;    // of all operations
  std::int64_t spans = 0;
};

// What a step waited for, in order: the longest chain through it. It is followed backward from the end of the step on
// the rank that ended last: through what that rank's main thread did; where it waited for a bucket, through the
// bucket's way back to the rank that began with it last, and on with what that rank did before. A piece of it is
// neighbouring spans of one rank and one kind; time between spans is "other".
struct PathPiece {
  int rank = 0;
  std::string kind = {};
  double begin = 0, seconds = 0;  // since the path begins
  std::int64_t spans = 0;
  std::string longest = {};  // the name of its longest span
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
  std::vector<ServerTime> servers = {};
  std::vector<BucketTime> buckets = {};
  std::vector<OperationTime> operations = {};  // longest first
  std::vector<PathShare> path = {};            // of all steps, the largest share first
  CriticalPath slowest_step = {};
  std::vector<std::string> remarks = {};  // what the reader should know about the file
};

// Error(bad_input) where there is no step in it.
TraceAnalysis analyze(const TraceFile& trace);
std::string to_text(const TraceAnalysis& analysis, std::size_t operations = 15);

}  // namespace trireme::report
