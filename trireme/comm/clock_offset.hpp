// The offset between the steady clocks of two ranks, for putting events of several machines on one timeline. One rank
// asks the other for the time repeatedly; each answer is assigned to the middle of its round trip, and the fastest
// round trips have the smallest error. Used by lab/bench/job_trace.hpp.
#pragma once

#include <cstdint>

#include "trireme/comm/communicator.hpp"

namespace trireme::comm {

struct ClockOffset {            // nanoseconds
  std::int64_t at = 0;          // time of measurement, on the other rank's clock
  std::int64_t offset = 0;      // the other clock minus this one
  std::int64_t round_trip = 0;  // of the answer used; the offset's error is at most half of it
};

// One rank measures while the other answers. Only these calls may use the tag meanwhile.
ClockOffset measure_clock_offset(Communicator& communicator, int other, int tag);
void answer_clock_questions(Communicator& communicator, int asker, int tag);

// Converts the other rank's time to this clock, with offsets from begin and end of a run because clocks drift.
std::int64_t to_own_clock(std::int64_t theirs, const ClockOffset& begin, const ClockOffset& end);

}  // namespace trireme::comm
