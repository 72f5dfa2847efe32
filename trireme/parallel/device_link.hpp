// Messages between stages from device to device (NCCL for GPUs), in the streams that move gradients: the hosts only
// enqueue. Made by the worker if each has its own device.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "trireme/comm/communicator.hpp"
#include "trireme/plan/compute_device.hpp"
#include "trireme/runtime/stage_link.hpp"

namespace trireme::parallel {

class DeviceLink final : public StageLink {
 public:
  // The device supports groups. Only open(), which is collective, uses the communicator, of all stages.
  DeviceLink(comm::Communicator& workers, ComputeDevice& device) : workers_(workers), device_(device) {}

  // Error(failed) if two stages have messages between them in different orders.
  void open(std::vector<StageMessage> messages) override;
  void begin(int message) override;
  bool done(int message) override;
  void wait(int message) override { done(message); }

 private:
  struct Message {
    StageMessage what;
    int ended = -1;  // event; -1: nothing under way
  };
  void join(int from, int to);

  comm::Communicator& workers_;
  ComputeDevice& device_;
  std::vector<Message> messages_;
  // Groups of two devices, by the other's rank: messages of one group wait for each other.
  std::map<int, std::unique_ptr<DeviceGroup>> outward_, inward_;
};

}  // namespace trireme::parallel
