#include "trireme/cluster/host_link.hpp"

namespace trireme::cluster {

void HostLink::send(const nlohmann::json& message) {
  said_ = Clock::now();
  channel_.send(message);
}

// Not on top of what the other end does not take.
void HostLink::keep_alive() {
  if (Clock::now() - said_ >= kInterval && channel_.unsent_bytes() == 0) send({{"type", "alive"}});
}

bool HostLink::receive(std::vector<nlohmann::json>& messages) {
  const std::size_t before = messages.size();
  const bool open = channel_.receive(messages);
  if (messages.size() > before) {
    heard_ = Clock::now();
    has_heard_ = true;
  }
  std::erase_if(messages, [](const nlohmann::json& message) { return message["type"] == "alive"; });
  return open;
}

}  // namespace trireme::cluster
