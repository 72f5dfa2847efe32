// Messages between stages from device to device (NCCL for GPUs), which the hosts only enqueue. A message waits in its
// stream until the other stage has begun it too, so each pair of stages has a stream per direction: no stage keeps
// another's messages waiting. Made by the worker if each has its own device.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "trireme/comm/communicator.hpp"
#include "trireme/plan/compute_device.hpp"
#include "trireme/runtime/stage_link.hpp"

namespace trireme::parallel {

class DeviceLink final : public StageLink {
 public:
  // The device supports groups. Only open(), which is collective, uses the communicator, of all stages. A message that
  // takes longer than the timeout is an error.
  DeviceLink(comm::Communicator& workers, ComputeDevice& device,
             std::chrono::duration<double> timeout = comm::Communicator::kDefaultTimeout)
      : workers_(workers), device_(device), timeout_(timeout) {}

  // Error(failed) if two stages have messages between them in different orders.
  void open(std::vector<StageMessage> messages) override;
  void begin(int message) override;
  bool done(int message) override;
  void wait(int message) override { done(message); }

 private:
  struct Message {
    StageMessage what;
    int ended = -1;       // event, of the last step or this one; -1: none yet
    bool is_due = false;  // begun, and its end was not asked for
  };
  struct Line {  // from one device to another
    int stream = 0;
    bool is_open = false;
    std::unique_ptr<DeviceGroup> group;
  };
  void join(int from, int to);
  Line& line_of(const StageMessage& message) { return (message.sends ? outward_ : inward_).at(message.peer); }
  std::string first_waiting(bool sends, int peer);

  comm::Communicator& workers_;
  ComputeDevice& device_;
  std::chrono::duration<double> timeout_;
  std::vector<Message> messages_;
  std::map<int, Line> outward_, inward_;  // by the other's rank
};

}  // namespace trireme::parallel
