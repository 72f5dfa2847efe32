// Measurements of each worker and parameter server, gathered and analyzed: time breakdown of a step per rank, hidden
// communication, slow ranks, traffic of a server per step. Filled by Benchmark; shown and recorded by its outputs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trireme/comm/communicator.hpp"
#include "trireme/record/run_record.hpp"

namespace trireme::lab {

// One rank. Times are seconds per timed step, means over all of them.
struct RankReport {
  int rank = 0;
  std::string host;
  std::vector<int> cores;
  std::vector<std::vector<double>> step_seconds, losses;  // [repeat][step]
  double step = 0;
  double update = 0;                   // applying gradients
  double wait = 0;                     // for the others' gradients, with nothing left to compute
  std::optional<double> bubble;        // of that, a pipeline's stage on the host: for other stages
  double input = 0;                    // waiting for images and copying them
  std::vector<double> bucket_seconds;  // reducing each bucket, including waiting for other ranks
  std::int64_t peak_rss_bytes = 0;
  std::int64_t planned_bytes = 0, used_bytes = 0;  // see record::WorkerMemory

  double compute() const { return step - update - wait - input; }
  double busy() const { return compute() + input; }  // the time others may have to wait for it
};

// Collective: the reports of all ranks, on every rank.
std::vector<RankReport> gather_reports(comm::Communicator& communicator, const RankReport& mine);

// Time breakdown of a step. A rank that finishes early waits for the slowest; waiting beyond that difference is exposed
// communication. A bucket's time is that on its last rank: the others' extra time is waiting for that rank. Computed
// from means over all steps: if ranks take turns at being late, part of the waiting counts as communication.
struct WorkerSummary {
  std::vector<record::Breakdown> ranks;
  double communication = 0;             // of all buckets, seconds per step
  std::optional<double> overlap;        // share of it hidden behind compute; none without communication
  std::vector<double> straggling;       // [rank]: compute time / median of the others'
  int slowest = 0;                      // rank
  static constexpr double kSlow = 1.1;  // straggling worth reporting
};
WorkerSummary summarize(const std::vector<RankReport>& ranks);

std::vector<std::vector<double>> slowest_steps(const std::vector<RankReport>& ranks);  // [repeat][step]

// Cumulative bytes in and out, from the server's statistics.
struct Traffic {
  std::int64_t received = 0, sent = 0;
};
Traffic traffic_of(const std::string& statistics);
// The rest of the statistics; `traffic` is that of `steps` steps.
record::ServerLoad server_load(const std::string& statistics, const std::string& host, const Traffic& traffic,
                               std::int64_t steps);

}  // namespace trireme::lab
