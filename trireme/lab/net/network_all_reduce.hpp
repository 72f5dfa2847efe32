// Measures a transport's all-reduce with each algorithm: single sizes, and a network's gradient buckets in the order of
// a step. Checks every result. All ranks make the same calls. Used by `trireme net`; tests run it over threads.
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
  std::vector<double> seconds;  // for all buckets in sequence, on the slowest rank, per sample

  double median() const;
  double jitter() const;
  double algorithm_bytes_per_second() const;
  // bytes / time x 2 (n - 1) / n, each rank's minimum traffic: comparable with a link's bandwidth for any n.
  double bus_bytes_per_second() const;
};

class AllReduceTest {
 public:
  // Collective. Allocates memory, shared within a node if possible, as in training. The communicator must outlive this.
  AllReduceTest(comm::Communicator& communicator, std::int64_t most_bytes);

  std::vector<comm::Algorithm> algorithms() const;  // collective; those the transport has here

  // Collective; all ranks get the result. Bucket sizes are multiples of 4. Error(failed) if a mean is wrong.
  AllReduceResult measure(const comm::AllReduceOptions& options, std::span<const std::int64_t> buckets,
                          double seconds) const;

 private:
  double sample(comm::AllReducer& reducer, std::span<const std::int64_t> buckets, std::int64_t repetitions,
                std::uint32_t number) const;

  comm::Communicator& communicator_;
  std::unique_ptr<comm::SharedMemory> arena_;
  AlignedMemory own_memory_;  // if memory cannot be shared
  std::span<float> values_;
};

// Bytes of the buckets in which bench exchanges a network's gradients, in the order backward completes them.
std::vector<std::int64_t> gradient_bucket_bytes(const std::string& model);

}  // namespace trireme::lab
