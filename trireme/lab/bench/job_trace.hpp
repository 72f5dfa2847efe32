// The trace of a job (`--trace`). Every member, servers included, makes one first, records spans, and writes it with
// the others at the end: the first rank reads the others' clocks at the start and end, collects their spans rank by
// rank and merges them on one time line into one file. Made by `trireme bench` and `trireme train`.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "trireme/comm/clock_offset.hpp"
#include "trireme/comm/communicator.hpp"
#include "trireme/perf/recorder.hpp"
#include "trireme/record/run_record.hpp"

namespace trireme::report {
class TraceWriter;
}

namespace trireme::lab {

class JobTrace {
 public:
  // Collective over all members of the job; the first `workers` are workers. The communicator must outlive this.
  JobTrace(comm::Communicator& members, int workers, std::int64_t steps);
  ~JobTrace();

  perf::Recorder& recorder() { return recorder_; }

  // Collective, once, when nobody records anymore. Lost members are left out. The first rank writes the file atomically
  // and returns a line about it; the others return an empty string.
  std::string write(const std::string& path);

 private:
  // What is known of a rank besides its spans.
  struct Member {
    comm::ClockOffset begin, end;
    bool is_lost = false;
  };

  bool is_first() const { return members_->rank() == 0; }
  std::string name_of(int rank) const;
  void measure_clocks(comm::ClockOffset Member::*when);
  std::int64_t first_begin() const;
  std::string description() const;
  void answer();
  std::int64_t write_own(report::TraceWriter& writer, std::int64_t origin);
  std::int64_t write_other(report::TraceWriter& writer, int rank, std::int64_t origin);
  Json facts(const std::vector<std::int64_t>& dropped) const;

  std::unique_ptr<comm::Communicator> members_;
  int workers_;
  std::string started_;
  std::vector<Member> known_;  // [rank], on the first rank
  perf::Recorder recorder_;
};

}  // namespace trireme::lab
