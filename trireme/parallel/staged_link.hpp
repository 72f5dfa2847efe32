// Messages between stages on devices, through pinned memory of the hosts: copied in the streams that move gradients,
// beside what the device computes. Another link carries them from host to host. Made by the worker.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "trireme/plan/compute_device.hpp"
#include "trireme/runtime/stage_link.hpp"

namespace trireme::parallel {

class StagedLink final : public StageLink {
 public:
  StagedLink(std::unique_ptr<StageLink> hosts, ComputeDevice& device) : device_(device), hosts_(std::move(hosts)) {}

  void open(std::vector<StageMessage> messages) override;
  void begin(int message) override;
  bool done(int message) override;
  void wait(int message) override;

 private:
  struct Message {
    StageMessage what;  // in the device's memory
    std::byte* on_host = nullptr;
    int begun = -1;          // event: the device's memory may be read or written
    int copied = -1;         // event, of the last step or this one; -1: none yet
    bool is_active = false;  // begun, but not done
  };
  void download(Message& message);
  void upload(Message& message);
  void send_downloaded();

  ComputeDevice& device_;
  DeviceMemory staging_;
  std::unique_ptr<StageLink> hosts_;  // destroyed first: nobody writes to the staging then
  std::vector<Message> messages_;
  std::deque<int> downloading_;  // messages that the hosts' link sends when they are there, in order
};

}  // namespace trireme::parallel
