// One run as data: what was run, on what, with which settings, every raw sample and the figures made from them.
// Commands that measure fill one; tables, plots and pages are views of it. The fields are the contract of the JSON
// form; what was not measured is null there, never zero.
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
  std::vector<int> cores;  // logical processors its threads are bound to; none: not bound
};

// Seconds per step of one rank. Where the optimizer's share is not known, compute includes it; where instructions run
// at the same time, neither is known.
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
  // With fp16: what the loss is multiplied by in the end, and updates left out because of gradients that overflowed.
  std::optional<double> loss_scale;
  std::optional<std::int64_t> skipped_updates;
  std::vector<Breakdown> breakdown;  // per rank
  std::optional<double> overlap;     // share of the communication hidden behind compute
  // All-reduce: bytes of a step's gradients as they travel, and 2 (n - 1) / n times these by the time of communication,
  // which compares with the bandwidth of the link between hosts, where that was measured before.
  std::optional<double> communication_bytes, bus_bytes_per_second, link_bytes_per_second;
  std::vector<double> straggling;  // per rank: its compute time by the median of the others'
  // Speed against one worker alone times the number of workers, and against workers that exchange nothing; measured in
  // the same run.
  std::optional<double> scaling_efficiency, share_of_independent;
  std::vector<double> alone_images_per_second, independent_images_per_second;  // per repeat
  // Speed lost to the input pipeline against a batch that stays in place; the median of what each repeat shows.
  std::optional<double> io_overhead_percent;
  std::vector<double> io_overhead_percent_per_repeat, in_place_images_per_second;
  std::optional<std::int64_t> bad_records;  // different ones of all workers, passed over
  std::vector<Json> servers;                // what each parameter server holds, moves and counts
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
  std::vector<std::vector<std::vector<double>>> losses;  // the same order
  Results results;
  bool interrupted = false;
  std::optional<std::string> error;
};

Json to_json(const RunRecord& record);

// "2024-05-01T12:30:00Z"
std::string rfc3339(std::chrono::system_clock::time_point time);
// Arguments this process was started with.
std::vector<std::string> command_line();

// Throws Error(bad_input) if write_json could not write there, and leaves nothing behind. To be called before a long
// run, not after it.
void check_writable(const std::string& path, const std::string& what = "the record");

}  // namespace trireme::report
