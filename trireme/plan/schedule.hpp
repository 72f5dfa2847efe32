// The steps of a run in order: instructions and the handling of gradients (waits between groups of cores, accumulation,
// copies, exchange with replicas or servers, clipping, scaling). schedule_run() is the last pass and the only one that
// knows how replicas agree. Executable walks the result; `trireme models --plan` prints it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "trireme/plan/program.hpp"

namespace trireme {

// A bucket is what one ApplyGradients instruction updates; buckets are numbered in instruction order.
enum class Action : std::uint8_t {
  compute,     // run an instruction
  barrier,     // wait for the other groups of cores
  merge,       // make a bucket's gradients the mean over the groups, in the first group's memory
  accumulate,  // add a bucket's gradients to those of earlier runs; in an update's last run, take the mean
  download,    // copy a bucket's gradients from the device to the host
  start,       // begin to transfer a bucket
  scatter,     // begin to sum a bucket, of which each replica gets its slice (Exchange::shard)
  gather,      // update this replica's slice of a bucket's variables and begin to collect the others' slices
  wait,        // until a bucket's transfer has ended
  upload,      // copy results to the device: a bucket's gradients, or values of its variables
  transform,   // clip and scale the gradients of all buckets
  begin,       // a transfer from or to another stage, given by its instruction
  end,         // wait for such a transfer
};
std::string_view to_string(Action action);

struct Step {
  Action action = Action::compute;
  int index = 0;  // of the instruction (compute, begin, end), otherwise of the bucket

  bool operator==(const Step&) const = default;
};

enum class Exchange : std::uint8_t {
  none,
  reduce,            // all-reduce gradients to their mean in host memory, then each replica applies them
  shard,             // each replica gets a slice of the mean, applies it, and sends the new values to the others
  reduce_on_device,  // as reduce, but between devices as part of their work
  // Servers apply the mean gradient; a run waits for new values, maybe of the run before, before it reads them.
  serve,
  serve_each,  // the same, but each replica's gradients are their own update
};
constexpr bool is_served(Exchange exchange) { return exchange >= Exchange::serve; }

// Layer-wise adaptive rate scaling (You, Gitman, Ginsburg 2017), for large batches: each weight's gradient, including
// decay, is scaled by coefficient · |w| / (|g| + decay · |w|). Biases and batch norm parameters are not scaled and do
// not decay. The optimizer rule must then have no decay of its own.
struct Lars {
  double coefficient = 0.001;
  double weight_decay = 0;
};

// What a training step does with gradients before it applies them.
struct GradientOptions {
  Exchange exchange = Exchange::none;
  int accumulate = 1;    // runs whose mean gradient makes an update; in schedules, micro-batches
  double clip_norm = 0;  // maximum norm of all gradients together; 0: no clipping
  std::optional<Lars> lars = {};

  bool transforms() const { return clip_norm > 0 || lars.has_value(); }
  bool changes_step() const { return exchange != Exchange::none || accumulate > 1 || transforms(); }
};

struct RunPlace {  // the group of cores that the schedule is for; on the host or on a device
  int group = 0;
  int groups = 1;
  bool on_host = true;
};

struct Schedule {
  std::vector<Step> steps;
  // Steps [first, last) that wait for a bucket's transfer and apply it: placed latest, but may run once it has ended.
  struct Finish {
    int bucket = 0;
    int first = 0, last = 0;
  };
  std::vector<Finish> finishes;
  std::vector<int> updates;  // [bucket]: the instruction that applies it
};

// For a run with an update or, if it collects, one that only accumulates. Error(bad_input) if the options do not fit.
Schedule schedule_run(const Program& program, const GradientOptions& options, const RunPlace& place, bool collects);

bool applies_gradients(const Instruction& instruction);

}  // namespace trireme
