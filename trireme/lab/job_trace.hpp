// The trace of a job: `--trace`. Every member, parameter servers too, makes one before it does anything else, lets its
// parts leave spans in the recorder, and writes it together with the others when all is over: the first rank asks the
// others for their clocks at the beginning and at the end, collects their spans one rank after the other, and puts all
// on one time line in one file. Made by `trireme bench` and `trireme train`.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "trireme/comm/clock_offset.hpp"
#include "trireme/comm/communicator.hpp"
#include "trireme/perf/recorder.hpp"
#include "trireme/report/run_record.hpp"

namespace trireme::report {
class TraceWriter;
}

namespace trireme::lab {

class JobTrace {
 public:
  // Collective: all members of the job, of which the first so many are workers. The communicator outlives this.
  JobTrace(comm::Communicator& members, int workers, std::int64_t steps);
  ~JobTrace();

  perf::Recorder& recorder() { return recorder_; }

  // Collective, once, when nobody leaves spans any more. Those who are lost are left out. The first rank writes the
  // file, which appears whole or not at all; gives back a line about it, and nothing on the others.
  std::string write(const std::string& path);

 private:
  // Of another rank, or of this one: what there is beside its spans.
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
