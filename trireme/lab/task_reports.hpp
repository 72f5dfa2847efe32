// What each worker and each parameter server has measured, brought together, and what follows from it: where the time
// of a step goes on every rank, how much of the communication is hidden, who is slow, what went through a server in a
// step. Filled by Benchmark; shown and recorded by its outputs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trireme/comm/communicator.hpp"
#include "trireme/report/run_record.hpp"

namespace trireme::lab {

// Of one rank. Times are seconds per timed step, means over all of them.
struct RankReport {
  int rank = 0;
  std::string host;
  std::vector<int> cores;
  std::vector<std::vector<double>> step_seconds, losses;  // [repeat][step]
  double step = 0;
  double update = 0;                   // applying gradients
  double wait = 0;                     // for gradients of the others, with nothing left to compute
  double input = 0;                    // waiting for images and putting them in place
  std::vector<double> bucket_seconds;  // reducing each bucket, waiting for other ranks included
  std::int64_t peak_rss_bytes = 0;

  double compute() const { return step - update - wait - input; }
  double busy() const { return compute() + input; }  // as long as others may have to wait for it
};

// Collective: the reports of all ranks, on every rank.
std::vector<RankReport> gather_reports(comm::Communicator& communicator, const RankReport& mine);

// Where a step goes. A rank that is done early waits for the slowest one; what is longer than that difference is
// communication that nothing hid. A bucket takes as long as on the rank that came to it last: the others' time is
// waiting for that rank. From means over all steps: where ranks take turns at being late, part of the waiting counts as
// communication.
struct WorkerSummary {
  std::vector<report::Breakdown> ranks;
  double communication = 0;             // seconds per step that buckets took
  std::optional<double> overlap;        // share of it that was hidden behind compute; none without communication
  std::vector<double> straggling;       // [rank]: its compute time by the median of the others'
  int slowest = 0;                      // rank
  static constexpr double kSlow = 1.1;  // straggling that is worth a word
};
WorkerSummary summarize(const std::vector<RankReport>& ranks);

// The slowest rank's time of every step, [repeat][step]: what a step takes.
std::vector<std::vector<double>> slowest_steps(const std::vector<RankReport>& ranks);

struct ServerReport {
  std::string host;
  std::int64_t variable_bytes = 0;
  double bytes_received_per_step = 0, bytes_sent_per_step = 0;  // of all workers, in the timed steps
  std::int64_t updates = 0;
  std::int64_t dropped_gradients = 0;  // that came too late: backup workers
  std::int64_t pushes = 0;             // gradients that came
  double mean_staleness = 0;           // updates between the values that a gradient is of and its own
  std::int64_t max_staleness = 0;
  std::int64_t max_lead = 0;  // steps that a worker was ahead of the slowest
};

// Bytes that have gone in and out until now, from the server's statistics.
struct Traffic {
  std::int64_t received = 0, sent = 0;
};
Traffic traffic_of(const std::string& statistics);
// The rest of the statistics; traffic is that of `steps` steps.
ServerReport server_report(const std::string& statistics, const std::string& host, const Traffic& traffic,
                           std::int64_t steps);
Json to_json(const ServerReport& server);

}  // namespace trireme::lab
