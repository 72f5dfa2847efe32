// Transfers of gradients between replicas, which a step starts as soon as a bucket is complete and waits for as late as
// it can. What a transfer brings is the schedule's business (plan/schedule.hpp): gradients that have become the mean
// over all replicas, or new values of variables that live on servers. Buckets start in the same order on all replicas,
// so nothing has to be negotiated. Implemented by parallel/all_reduce_sync.hpp, parallel/device_sync.hpp and
// ps/worker_sync.hpp.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "trireme/graph/graph.hpp"
#include "trireme/plan/schedule.hpp"

namespace trireme {

// Memory of the device that computes, or that of the host beside it; the same where the device is the host.
enum class MemorySide : std::uint8_t { host, device };

// Gradients that are exchanged and applied together: the update they are for, and their memory, neighbours in one.
struct GradientBucket {
  std::string name;
  op::OptimizerRule rule;
  const float* learning_rate = nullptr;  // where it is, once the bucket is complete
  std::vector<NodeId> variables;         // of the user's graph
  std::vector<std::span<float>> parts;
  std::vector<std::span<float>> values;               // of the variables, part by part
  std::vector<std::vector<std::span<float>>> states;  // [array of the rule's state][part]: likewise
  int first_use = 0;                                  // the instruction that reads one of the variables first
  std::int64_t bytes() const {
    std::size_t elements = 0;
    for (const std::span<float> part : parts) elements += part.size();
    return static_cast<std::int64_t>(elements * sizeof(float));
  }
};

// Called for every run that makes an update, by one thread at a time: begin_step(), start() of each bucket in order,
// done() and wait(), end_step(). If values are served, done() and wait() also come in runs that only collect. Where
// gradients are reduced on the device, start() gives the device work in its current stream, maybe once for many steps,
// which are recorded; what follows there needs no wait().
class GradientExchange {
 public:
  virtual ~GradientExchange() = default;

  virtual void begin_step(std::uint64_t step) = 0;
  virtual void start(int bucket) = 0;
  virtual bool done(int bucket) = 0;
  virtual void wait(int bucket) = 0;
  virtual void end_step() {}
  // Throws what has gone wrong meanwhile. Called between instructions, in every run, maybe by several threads: costs
  // next to nothing.
  virtual void check() {}
};

}  // namespace trireme
