// Measures the all-reduce of a transport, by each of the project's algorithms: of single sizes and of the gradient
// buckets of a network, as they follow one another in a step. Every result is checked. Every rank calls the same.
// Used by `trireme net`; runs over threads in tests.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "trireme/base/aligned_memory.hpp"
#include "trireme/comm/all_reducer.hpp"

namespace trireme::lab {

struct AllReduceResult {
  std::string transport;
  comm::Algorithm algorithm = comm::Algorithm::ring;
  std::int64_t bytes = 0;  // of all buckets
  int ranks = 1;
  std::vector<double> seconds;  // of all buckets one after the other, on the slowest rank, per sample

  double median() const;
  double jitter() const;
  double algorithm_bytes_per_second() const;  // bytes / time
  // Times 2 (n - 1) / n: what each rank has sent and received at best, so that it compares with the link's bandwidth
  // whatever the number of ranks.
  double bus_bytes_per_second() const;
};

class AllReduceTest {
 public:
  // Collective. Memory for so many bytes, shared inside a node where the system lets it, as gradients are in training.
  // The communicator outlives this.
  AllReduceTest(comm::Communicator& communicator, std::int64_t most_bytes);

  // The algorithms that this transport has here; collective.
  std::vector<comm::Algorithm> algorithms() const;

  // Bytes of each bucket are a multiple of 4. Collective; known to all ranks. Error(failed) where a mean is wrong.
  AllReduceResult measure(const comm::AllReduceOptions& options, std::span<const std::int64_t> buckets,
                          double seconds) const;

 private:
  double sample(comm::AllReducer& reducer, std::span<const std::int64_t> buckets, std::int64_t repetitions,
                std::uint32_t number) const;

  comm::Communicator& communicator_;
  std::unique_ptr<comm::SharedMemory> arena_;
  AlignedMemory own_memory_;  // where none can be shared
  std::span<float> values_;
};

// Bytes of the buckets in which bench exchanges the gradients of a network, in the order in which backward completes
// them.
std::vector<std::int64_t> gradient_bucket_bytes(const std::string& model);

}  // namespace trireme::lab
