// What a step waited for, in order: the longest chain through it. It is followed backward from the end of the step on
// the rank that ended last: through what that rank's main thread did; where it waited for a bucket, through the
// bucket's way back to the rank that began with it last, and on with what that rank did before. Part of
// report/trace_analysis.hpp.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trireme/report/trace_steps.hpp"

namespace trireme::report {

// Neighbouring spans of one rank and one kind. Time between spans is "other".
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

CriticalPath critical_path(const TraceSteps& steps, std::size_t step);
// Of several paths together, the largest share first.
std::vector<PathShare> shares_of(const std::vector<CriticalPath>& paths);

}  // namespace trireme::report
