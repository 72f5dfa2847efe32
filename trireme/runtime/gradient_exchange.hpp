// What happens to gradients after backward when several replicas train together. The runtime calls it: a bucket is
// handed over as soon as its gradients are complete, and backward goes on. Then either the exchange makes them the mean
// over all replicas, and the bucket's update runs in this program; or the variables live elsewhere and the exchange
// brings their new values, which are waited for where the next step first reads them. Buckets complete in the plan's
// order, which is the same on all replicas, so nothing has to be negotiated. Implemented by train/all_reduce_sync.hpp,
// train/device_sync.hpp and ps/worker_sync.hpp.
//
// Where the program runs on a device that is not the host, buckets are copied to memory of the host and back, unless
// the exchange works in the device's memory.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "trireme/graph/graph.hpp"

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

class GradientExchange {
 public:
  virtual ~GradientExchange() = default;

  // Of every step, in this order, from one thread. Buckets count from 0 in the order of Executable::gradient_buckets().
  virtual void begin_step(std::uint64_t step) = 0;
  virtual void complete(int bucket) = 0;  // this replica's gradients are in place
  virtual bool ready(int bucket) = 0;     // whether they are the mean over all replicas now,
  virtual void wait(int bucket) = 0;      // until they are
  virtual void end_step() {}
  // Throws what has gone wrong meanwhile. Called before every instruction: costs next to nothing.
  virtual void check() {}

  // True: this run's gradients are only collected, for an update in a later run: the updates are left out, the step
  // does not count, and of the above only begin_step() and complete() are called. Does not change during a run.
  virtual bool only_collects() const { return false; }

  // True: gradients are exchanged in the memory of the device, which is not the host. Then complete() gives the device
  // work in the current lane that makes them the mean; the bucket's update follows it there without ready() and wait().
  // It may be called once for many steps, while they are recorded: it does the same in all of them.
  virtual bool works_on_device() const { return false; }

  // True: the exchange writes the variables itself. Then the updates of the program are left out, and ready() and
  // wait() are about new values being in place, maybe in the next step.
  virtual bool updates_variables() const { return false; }
};

}  // namespace trireme
