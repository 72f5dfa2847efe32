// One run as data: what ran, on what, with which settings, every raw sample and the derived figures. Filled by commands
// that measure; tables and plots are views. The fields define the JSON form; unmeasured values are null, never zero.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trireme/base/json.hpp"
#include "trireme/perf/statistics.hpp"

namespace trireme::report {

inline constexpr const char* kRunSchema = "trireme.run/1";

struct Task {
  std::string role = "worker";
  int index = 0;
  std::string host;
  std::vector<int> cores;  // logical processors its threads are bound to; empty: not bound
};

// Seconds per step of one rank. Compute includes an unknown optimizer share; if instructions overlap, both are unknown.
struct Breakdown {
  std::optional<double> compute, communication, exposed_communication, input_wait, optimizer, idle;
};

struct Results {
  std::optional<double> images_per_second;  // global
  std::optional<double> images_per_second_per_worker;
  std::vector<double> images_per_second_per_repeat;  // global
  std::optional<perf::Summary> step_seconds;
  std::optional<double> jitter;  // images per second, per worker
  std::optional<double> loss;    // of the last step
  // With fp16: the final loss scale, and updates skipped because gradients overflowed.
  std::optional<double> loss_scale;
  std::optional<std::int64_t> skipped_updates;
  std::vector<Breakdown> breakdown;  // per rank
  std::optional<double> overlap;     // share of communication hidden behind compute
  // All-reduce: bytes of a step's gradients as they travel; 2 (n - 1) / n times these / communication time; and, to
  // compare with that, the bandwidth of the link between hosts, if measured before.
  std::optional<double> communication_bytes, bus_bytes_per_second, link_bytes_per_second;
  std::vector<double> straggling;  // per rank: compute time / median of the others'
  // Speed relative to one worker alone times their number, and to workers that exchange nothing, in the same run.
  std::optional<double> scaling_efficiency, share_of_independent;
  std::vector<double> alone_images_per_second, independent_images_per_second;  // per repeat
  // Speed lost to the input pipeline relative to a fixed batch; the median over the repeats.
  std::optional<double> io_overhead_percent;
  std::vector<double> io_overhead_percent_per_repeat, in_place_images_per_second;
  std::optional<std::int64_t> bad_records;  // distinct ones skipped, over all workers
  std::vector<Json> servers;                // each parameter server's load, traffic and counters
  std::int64_t peak_rss_bytes = 0;
  std::optional<double> flops_per_second;
  std::optional<double> utilisation;  // of the peak measured in this run
};

struct RunRecord {
  std::vector<std::string> command;
  std::string started;  // RFC 3339
  Json build, machine, config;
  std::vector<std::string> given;  // options that the user has set, by name
  std::vector<Task> cluster;
  std::vector<std::vector<std::vector<double>>> steps;   // seconds: [rank][repeat][step]
  std::vector<std::vector<std::vector<double>>> losses;  // same order
  Results results;
  bool interrupted = false;
  std::optional<std::string> error;
};

Json to_json(const RunRecord& record);

std::string rfc3339(std::chrono::system_clock::time_point time);  // "2024-05-01T12:30:00Z"
std::vector<std::string> command_line();                          // of this process

// Error(bad_input) if write_json could not write there; leaves nothing behind. Call before a long run.
void check_writable(const std::string& path, const std::string& what = "the record");

}  // namespace trireme::report
