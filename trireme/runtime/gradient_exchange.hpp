// What happens to gradients between backward and their update when several replicas train together. The runtime calls
// it: a bucket is handed over as soon as its gradients are complete, backward goes on, and the bucket's update runs
// when the exchange is done with it. Buckets complete in the plan's order, which is the same on all replicas, so
// nothing has to be negotiated. Implemented by train/all_reduce_sync.hpp.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace trireme {

// Gradients that are exchanged and applied together: the update they are for, and their memory, neighbours in one.
struct GradientBucket {
  std::string name;
  std::vector<std::span<float>> parts;
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
  virtual bool ready(int bucket) = 0;     // whether they are the mean over all replicas now
  virtual void wait(int bucket) = 0;      // until they are
};

}  // namespace trireme
