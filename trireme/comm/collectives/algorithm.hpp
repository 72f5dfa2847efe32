// One way to all-reduce. Made by AllReducer, which chooses among them; each is in a file of its own in this folder.
#pragma once

#include <span>

#include "trireme/comm/communicator.hpp"

namespace trireme::comm {

class AllReduceAlgorithm {
 public:
  virtual ~AllReduceAlgorithm() = default;
  // Collective and in place. Allocates nothing once values of this size have been reduced before.
  virtual void reduce(std::span<float> values, Reduction reduction) = 0;
};

}  // namespace trireme::comm
