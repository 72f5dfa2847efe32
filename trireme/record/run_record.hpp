// Records as data, each declared once: its fields are written and read by one list (base/fields.hpp). One run: what
// ran, on what, with which settings, every raw sample and the derived figures. Filled by commands that measure; tables
// and plots are views. Unmeasured values are null, never zero.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trireme/base/json.hpp"
#include "trireme/perf/machine.hpp"
#include "trireme/perf/statistics.hpp"

namespace trireme::record {

inline constexpr const char* kRunSchema = "trireme.run/1";

// The machine and what this run used of it.
struct Machine : perf::Machine {
  Json gpu;  // the device used and its facts; null: none
  std::optional<double> peak_flops_per_second;
  std::string peak_of;  // element type

  Machine() = default;
  explicit Machine(perf::Machine facts) : perf::Machine(std::move(facts)) {}

  std::string gpu_name() const;   // empty: none
  std::string hardware() const;   // CPU and cores; kUnknownMachine without facts
  std::string host_line() const;  // with the host
  std::string line() const;       // and the GPU
};
inline constexpr const char* kUnknownMachine = "unknown machine";

struct Task {
  std::string role = "worker";
  int index = 0;
  std::string host;
  std::vector<int> cores = {};  // logical processors its threads are bound to; empty: not bound
  int node = 0;                 // of the network test
};

// Of a pipeline. A file with it is one for --parallel.
struct Stage {
  std::string begins_at = {};  // node; empty: the images, or the schedule interleaved, which cuts by itself
  int replicas = 1;
};
struct Cut {
  std::string at;                   // node at which a part begins
  std::int64_t bytes_per_step = 0;  // that cross it, both ways
};
struct Pipeline {
  std::string parallel;  // "hybrid:3-1"
  std::vector<Stage> stages;
  int micro_batches = 0;
  std::string schedule;
  std::vector<Cut> cuts;             // with interleaved more than stages
  std::vector<double> bubble_share;  // [stage]: of a step, mean of its workers; empty: not measured
};

// What --parallel auto considered.
struct ParallelPlan : Pipeline {                 // without stages: data parallelism
  double images_per_second = 0, idle_share = 0;  // predicted
  double memory_bytes = 0;                       // of the worker that needs most
  std::string recompute;                         // empty: none
  std::string problem;                           // why it cannot be used; empty: it can
  bool chosen = false;
};

// Seconds per step of one rank. Compute includes an unknown optimizer share; if instructions overlap, both are unknown.
struct Breakdown {
  std::optional<double> compute, communication, exposed_communication, input_wait, optimizer, idle;
};

// Of one rank, for its step.
struct WorkerMemory {
  std::int64_t planned_bytes = 0;
  std::int64_t used_bytes = 0;  // by which the process grew at most
};

struct StepSeconds {
  std::optional<double> mean, median, p95, stderr_mean;

  StepSeconds() = default;
  explicit StepSeconds(const perf::Summary& summary)
      : mean(summary.mean), median(summary.median), p95(summary.p95), stderr_mean(summary.stderr_mean) {}
};

// A parameter server's load, traffic and counters.
struct ServerLoad {
  std::string host;
  std::int64_t variable_bytes = 0;
  double bytes_received_per_step = 0, bytes_sent_per_step = 0;  // over all workers, in the timed steps
  std::int64_t updates = 0;
  std::int64_t dropped_gradients = 0;  // arrived too late (backup workers)
  std::int64_t pushes = 0;             // gradients received
  double mean_staleness = 0;           // updates between the values a gradient was computed from and its own update
  std::int64_t max_staleness = 0;
  std::int64_t max_lead = 0;  // steps a worker was ahead of the slowest
};

struct Results {
  std::optional<double> images_per_second;  // global
  std::optional<double> images_per_second_per_worker;
  std::vector<double> images_per_second_per_repeat;  // global
  StepSeconds step_seconds;
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
  std::vector<ServerLoad> servers;
  // Speed relative to one worker alone times their number, and to workers that exchange nothing, in the same run.
  std::optional<double> scaling_efficiency, share_of_independent;
  std::vector<double> alone_images_per_second, independent_images_per_second;  // per repeat
  // Speed lost to the input pipeline relative to a fixed batch; the median over the repeats.
  std::optional<double> io_overhead_percent;
  std::vector<double> io_overhead_percent_per_repeat, in_place_images_per_second;
  std::optional<std::int64_t> bad_records;  // distinct ones skipped, over all workers
  std::int64_t peak_rss_bytes = 0;
  std::vector<WorkerMemory> memory;  // per rank
  std::optional<double> flops_per_second;
  std::optional<double> utilisation;  // of the peak measured in this run
};

// Which run of which study this is.
struct StudyRun {
  std::string name;
  Json cell;  // options that the study varies, by name
  int repeat = 0;
  std::string framework;
  std::string command = {};                  // shell line that repeats it
  std::string kind = {};                     // figure that the study asks for
  std::string round = {};                    // of a search
  std::optional<double> trial_seconds = {};  // of a search: how long it was to measure
  std::optional<double> seconds = {};        // wall time
};

struct RunRecord {
  std::string schema = kRunSchema;
  std::vector<std::string> command;
  std::string started;  // RFC 3339
  Json build;
  Machine machine;
  Json config;                                    // options, with underscores
  std::optional<std::vector<std::string>> given;  // options that the user has set, by name; none: an old record
  std::vector<Task> cluster;
  std::optional<Pipeline> pipeline;
  std::vector<ParallelPlan> plans;
  std::vector<std::vector<std::vector<double>>> steps;   // seconds: [rank][repeat][step]
  std::vector<std::vector<std::vector<double>>> losses;  // same order
  Results results;
  bool interrupted = false;
  std::optional<std::string> error;
  std::optional<StudyRun> study;

  std::optional<double> predicted_images_per_second() const;  // by --parallel auto

  double images_per_second() const { return results.images_per_second.value_or(0); }
};

Json to_json(const Machine& machine);
Json to_json(const StudyRun& study);
Json to_json(const RunRecord& record);
// What the JSON has of it; the rest stays as it is.
void read(const Json& json, ServerLoad& load);
void read(const Json& json, RunRecord& record);

std::string build_line(const Json& build);                          // version and commit
std::string command_text(const std::vector<std::string>& command);  // as a shell line, the program without its folder

std::string rfc3339(std::chrono::system_clock::time_point time);  // "2024-05-01T12:30:00Z"
std::vector<std::string> command_line();                          // of this process

}  // namespace trireme::record
