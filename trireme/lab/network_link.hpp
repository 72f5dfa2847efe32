// The connection of two ranks as a network test uses it: over a transport of the project, or over a plain TCP socket,
// which is what the transports are compared with. Each of the two ranks has one; made and used by network_test.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "trireme/comm/communicator.hpp"

namespace trireme::lab {

class NetworkLink {
 public:
  virtual ~NetworkLink() = default;
  NetworkLink(const NetworkLink&) = delete;
  NetworkLink& operator=(const NetworkLink&) = delete;

  // So many messages of equal size that lie one after the other, all under way at the same time. Return when the memory
  // may be used again, or when all have arrived.
  virtual void send(std::span<const std::byte> data, std::size_t messages = 1) = 0;
  virtual void receive(std::span<std::byte> data, std::size_t messages = 1) = 0;
  // One message each way at the same time.
  virtual void exchange(std::span<const std::byte> out, std::span<std::byte> in) = 0;

 protected:
  NetworkLink() = default;
};

// The communicator outlives the link.
std::unique_ptr<NetworkLink> make_transport_link(comm::Communicator& communicator, int peer);

// By the two ranks together: the lower one listens, and the other connects to it at this host, after they have agreed
// on a port over the communicator. Its timeout is that of the sockets.
std::unique_ptr<NetworkLink> make_socket_link(comm::Communicator& control, int peer, const std::string& listener_host);

}  // namespace trireme::lab
