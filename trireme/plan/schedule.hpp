// Everything that a run of a program does, in order: its instructions and, besides computing, what happens to
// gradients. Groups of cores wait for each other; gradients are accumulated over runs, copied between device and host,
// reduced over replicas or pushed to parameter servers, clipped and scaled. schedule_run() is the last pass over a
// program and the only one that knows how replicas agree. Executable walks the result; `trireme models --plan` prints
// it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "trireme/plan/program.hpp"

namespace trireme {

// A bucket is what one ApplyGradients instruction updates; buckets count in the order of these instructions.
enum class Action : std::uint8_t {
  compute,     // run an instruction
  barrier,     // wait for the other groups of cores
  merge,       // make the gradients of a bucket the mean over the groups of cores, in the first group's memory
  accumulate,  // add the gradients of a bucket to those of earlier runs, or take the mean of all in an update's last
               // run
  download,    // copy the gradients of a bucket from the device to the host
  start,       // begin to transfer a bucket
  wait,        // until the transfer of a bucket has ended
  upload,      // copy what has come to the device: gradients of a bucket, or values of its variables
  transform,   // clip and scale the gradients of all buckets
};
std::string_view to_string(Action action);

struct Step {
  Action action = Action::compute;
  int index = 0;  // the instruction; else the bucket

  bool operator==(const Step&) const = default;
};

// How replicas agree on their variables.
enum class Exchange : std::uint8_t {
  none,
  reduce,            // gradients become the mean over all replicas in the host's memory, then each replica applies them
  reduce_on_device,  // likewise, but the devices do it among themselves, as a part of their work
  serve,       // gradients go to servers, which apply the mean over all replicas; a run waits for the new values before
               // it reads them, which may be in the next run
  serve_each,  // likewise, but each replica's gradients are an update of their own
};
constexpr bool is_served(Exchange exchange) { return exchange >= Exchange::serve; }

// Layer-wise adaptive rate scaling (You, Gitman, Ginsburg 2017), for large batches: each weight's gradient, its decay
// included, is scaled by coefficient · |w| / (|g| + decay · |w|). Biases and batch norm's parameters are left as they
// are, and do not decay. The rule that applies gradients has no decay of its own then.
struct Lars {
  double coefficient = 0.001;
  double weight_decay = 0;
};

// What a training step does with gradients before it applies them.
struct GradientOptions {
  Exchange exchange = Exchange::none;
  int accumulate = 1;    // runs whose mean gradient makes an update
  double clip_norm = 0;  // the norm of all gradients together is clipped to this; 0: it is not
  std::optional<Lars> lars = {};

  bool transforms() const { return clip_norm > 0 || lars.has_value(); }
  bool changes_step() const { return exchange != Exchange::none || accumulate > 1 || transforms(); }
};

// Which group of cores the schedule is for, of those that run copies of the program, on the host or on a device.
struct RunPlace {
  int group = 0;
  int groups = 1;
  bool on_host = true;
};

struct Schedule {
  std::vector<Step> steps;
  // Steps [first, last) that finish a bucket: they wait for its transfer and apply it. They stand at the latest
  // possible place, and may run as soon as the transfer has ended.
  struct Finish {
    int bucket = 0;
    int first = 0, last = 0;
  };
  std::vector<Finish> finishes;
  std::vector<int> updates;  // [bucket]: the instruction that applies it
};

// The schedule of a run that makes an update or, if it collects, of one whose gradients are only accumulated.
// Error(bad_input) if the program and the options contradict each other.
Schedule schedule_run(const Program& program, const GradientOptions& options, const RunPlace& place, bool collects);

bool applies_gradients(const Instruction& instruction);

}  // namespace trireme
