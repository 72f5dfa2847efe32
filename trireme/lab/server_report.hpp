// What a parameter server has counted, as its workers were told, and what went through it in a step. Filled by
// Benchmark; shown and recorded by its outputs.
#pragma once

#include <cstdint>
#include <string>

#include "trireme/report/run_record.hpp"

namespace trireme::lab {

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
