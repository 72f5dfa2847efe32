// All-reduce as in parallel/all_reduce_sync.hpp, but gradients stay in device memory and the devices sum them (NCCL for
// GPUs) in the captured step. Made by the worker for Replicas if each replica has its own device.
#pragma once

#include <memory>
#include <vector>

#include "trireme/comm/communicator.hpp"
#include "trireme/parallel/gradient_sync.hpp"

namespace trireme::parallel {

class DeviceSync : public GradientSync {
 public:
  // The device supports groups. Only open() uses the communicator.
  DeviceSync(comm::Communicator& communicator, ComputeDevice& device);

  void configure(const Graph&, SessionOptions&) override {}
  void open(std::vector<GradientBucket> buckets, std::uint64_t step) override;

  Exchange kind() const override { return Exchange::reduce_on_device; }
  void begin_step(std::uint64_t step) override;
  void start(int bucket) override;
  bool done(int) override { return true; }
  void wait(int) override {}

  void set_vote(float value) override { vote_ = value; }
  float agreed() const override;
  void set_weight(float weight) override { weight_ = weight; }
  std::span<const GradientBucket> buckets() const override { return buckets_; }
  // Unknown: the devices continue with backward meanwhile.
  std::span<const double> communication_seconds() const override { return {}; }

 private:
  struct StepValues {  // values sent with a step, on the device and staged on the host
    float weight = 0;  // of this replica's gradients in the sum
    float one = 1;     // of its vote
    float vote = 0;    // afterwards the sum of all
  };

  comm::Communicator& communicator_;
  ComputeDevice& device_;
  std::unique_ptr<DeviceGroup> group_;
  std::vector<GradientBucket> buckets_;
  DeviceMemory on_device_, sent_, received_;  // StepValues; a vote
  float vote_ = 0, weight_ = 1;
};

}  // namespace trireme::parallel
