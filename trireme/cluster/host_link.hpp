// The connection between the relay of a host, beside the supervisor, and the agent on that host: it carries the
// channels of all tasks there, and tells a host that is out of reach from one that has nothing to say. ssh would notice
// that late, and the far end perhaps never.
//
// The agent begins with the greeting (greeting.hpp). The messages, by "type":
//   agent to relay    from {task, message}    what the task's runner says to the supervisor
//                     gone {task}             its connection has ended
//                     end_request             somebody there (Slurm) wants the job to end
//   relay to agent    to {task, message}      what the supervisor says to the task's runner
//   both              alive                   nothing else was to be said
#pragma once

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "trireme/base/clock.hpp"
#include "trireme/cluster/channel.hpp"

namespace trireme::cluster {

class HostLink {
 public:
  static constexpr std::chrono::milliseconds kInterval{1000};  // of signs of life
  static constexpr std::chrono::milliseconds kSilence{8000};   // after which the other end is given up

  explicit HostLink(Channel channel) : channel_(std::move(channel)) {}

  const Channel& channel() const { return channel_; }
  void send(const nlohmann::json& message) {
    said_ = SteadyClock::now();
    channel_.send(message);
  }
  // To be called at least each kInterval. Not on top of what the other end does not take.
  void keep_alive() {
    if (SteadyClock::now() - said_ >= kInterval && channel_.unsent_bytes() == 0) send({{"type", "alive"}});
  }
  void flush() { channel_.flush(); }
  // As Channel has it.
  [[nodiscard]] bool receive(std::vector<nlohmann::json>& messages) {
    const std::size_t before = messages.size();
    const bool open = channel_.receive(messages);
    if (messages.size() > before) {
      heard_ = SteadyClock::now();
      has_heard_ = true;
    }
    std::erase_if(messages, [](const nlohmann::json& message) { return message["type"] == "alive"; });
    return open;
  }
  bool has_heard() const { return has_heard_; }  // anything, ever
  // For as long as nobody reads from here, nothing can be heard.
  void excuse_silence() { heard_ = SteadyClock::now(); }
  bool is_silent() const { return SteadyClock::now() - heard_ > kSilence; }

 private:
  Channel channel_;
  SteadyClock::time_point heard_ = SteadyClock::now(), said_ = SteadyClock::now();
  bool has_heard_ = false;
};

}  // namespace trireme::cluster
