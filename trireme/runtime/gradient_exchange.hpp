// Gradient transfers between replicas. A step starts each as soon as its bucket is complete and waits for it as late as
// possible. The schedule (plan/schedule.hpp) decides what comes back: gradients averaged over replicas, or new values
// from servers. Buckets start in the same order on all replicas, so nothing is negotiated. Implemented by
// parallel/all_reduce_sync.hpp, parallel/device_sync.hpp and ps/worker_sync.hpp.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "trireme/graph/graph.hpp"
#include "trireme/plan/schedule.hpp"

namespace trireme {

// Memory of the compute device, or of the host next to it; the same if the device is the host.
enum class MemorySide : std::uint8_t { host, device };

// Gradients exchanged and applied together by one update. Adjacent ones form one part.
struct GradientBucket {
  std::string name;
  op::OptimizerRule rule;
  const float* learning_rate = nullptr;  // its address; valid once the bucket is complete
  std::vector<NodeId> variables;         // of the user's graph
  std::vector<std::span<float>> parts;
  std::vector<std::span<float>> values;               // of the variables, part by part
  std::vector<std::vector<std::span<float>>> states;  // [state array of the rule][part]
  int first_use = 0;                                  // the first instruction that reads one of the variables
  std::int64_t bytes() const {
    std::size_t elements = 0;
    for (const std::span<float> part : parts) elements += part.size();
    return static_cast<std::int64_t>(elements * sizeof(float));
  }
};

// Called by one thread at a time in every run with an update: begin_step(), start() of each bucket in order (or
// scatter() and gather()), done() and wait(), end_step(). If values are served, collecting runs also call done() and
// wait(). On a device, start() enqueues work in its current stream, maybe captured once for many steps; what follows
// there needs no wait().
class GradientExchange {
 public:
  virtual ~GradientExchange() = default;

  virtual void begin_step(std::uint64_t step) = 0;
  virtual void start(int bucket) = 0;
  virtual void scatter(int) {}  // these two with Exchange::shard, see Action
  virtual void gather(int) {}
  virtual bool done(int bucket) = 0;
  virtual void wait(int bucket) = 0;
  virtual void end_step() {}
  // Throws earlier errors. Called between instructions, maybe by several threads: must be cheap.
  virtual void check() {}
};

}  // namespace trireme
