// Plain connections, for what a gRPC client would never send.
#pragma once

#include <arpa/inet.h>
#include <sys/socket.h>

#include <string>

#include "trireme/base/unique_fd.hpp"

namespace trireme::comm::testkit {

// To a port of the loopback; not open if nobody listens there.
inline UniqueFd connect_to(const std::string& address) {
  UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in target{};
  target.sin_family = AF_INET;
  target.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  target.sin_port = htons(static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
  if (connect(socket.get(), reinterpret_cast<const sockaddr*>(&target), sizeof target) != 0) socket.reset();
  return socket;
}

inline bool send_all(int socket, const std::string& bytes) {
  for (std::size_t at = 0; at < bytes.size();) {
    const ssize_t count = send(socket, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
    if (count <= 0) return false;
    at += static_cast<std::size_t>(count);
  }
  return true;
}

}  // namespace trireme::comm::testkit
