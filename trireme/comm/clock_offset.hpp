// How far the steady clocks of two ranks are apart, so that what happened on several machines can be put on one time
// line. One rank asks many times what time it is there; the answer belongs to the middle of the question's way there
// and back, and those that came back fastest are off by the least. Used by lab/job_trace.hpp.
#pragma once

#include <cstdint>

#include "trireme/comm/communicator.hpp"

namespace trireme::comm {

// Nanoseconds.
struct ClockOffset {
  std::int64_t at = 0;          // when it was measured, by the clock of the other rank
  std::int64_t offset = 0;      // its clock minus this one
  std::int64_t round_trip = 0;  // of the answer that counts: the offset is off by half of it at most
};

// One rank measures while the other answers. Tag is one of the caller's, and theirs alone meanwhile.
ClockOffset measure_clock_offset(Communicator& communicator, int other, int tag);
void answer_clock_questions(Communicator& communicator, int asker, int tag);

// A time of the other rank's clock by this one's, given what was measured at the beginning and at the end of a run:
// clocks of different machines run a little apart.
std::int64_t to_own_clock(std::int64_t theirs, const ClockOffset& begin, const ClockOffset& end);

}  // namespace trireme::comm
