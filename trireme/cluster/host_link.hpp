// The connection between a host's relay, next to the supervisor, and the agent on that host. Carries the channels of
// all tasks there and detects an unreachable host, which ssh notices late or never.
//
// The agent starts with the greeting (greeting.hpp). Messages by "type":
//   agent to relay    from {task, message}    from the task's runner to the supervisor
//                     gone {task}             its connection has ended
//                     end_request             Slurm wants the job to end
//   relay to agent    to {task, message}      from the supervisor to the task's runner
//   both              alive                   sent if there is nothing else
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
  static constexpr std::chrono::milliseconds kInterval{1000};  // between signs of life
  static constexpr std::chrono::milliseconds kSilence{8000};   // after which the peer counts as lost

  explicit HostLink(Channel channel) : channel_(std::move(channel)) {}

  const Channel& channel() const { return channel_; }
  void send(const nlohmann::json& message) {
    said_ = SteadyClock::now();
    channel_.send(message);
  }
  // Call at least every kInterval. Sends nothing while earlier data is unsent.
  void keep_alive() {
    if (SteadyClock::now() - said_ >= kInterval && channel_.unsent_bytes() == 0) send({{"type", "alive"}});
  }
  void flush() { channel_.flush(); }
  // Like Channel::receive().
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
  // Call after a time in which nobody read from this link.
  void excuse_silence() { heard_ = SteadyClock::now(); }
  bool is_silent() const { return SteadyClock::now() - heard_ > kSilence; }

 private:
  Channel channel_;
  SteadyClock::time_point heard_ = SteadyClock::now(), said_ = SteadyClock::now();
  bool has_heard_ = false;
};

}  // namespace trireme::cluster
