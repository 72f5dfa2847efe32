#include "trireme/comm/grpc/bind_address.hpp"

#include <fmt/format.h>
#include <netdb.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include "trireme/base/error.hpp"
#include "trireme/base/unique_fd.hpp"

namespace trireme::comm::rpc {
namespace {

using AddressList = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

// Null, with the reason, where there is none.
AddressList look_up(const std::string& address, std::string& reason) {
  AddressList none(nullptr, &freeaddrinfo);
  const std::size_t colon = address.rfind(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == address.size()) {
    reason = "is not of the form HOST:PORT";
    return none;
  }
  std::string host = address.substr(0, colon);
  if (host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  const std::string port = address.substr(colon + 1);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int code = getaddrinfo(host.c_str(), port.c_str(), &hints, &found);
  if (code != 0) {
    reason = gai_strerror(code);
    return none;
  }
  return {found, &freeaddrinfo};
}

std::string to_text(const addrinfo& address) {
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> port{};
  getnameinfo(address.ai_addr, address.ai_addrlen, host.data(), host.size(), port.data(), port.size(),
              NI_NUMERICHOST | NI_NUMERICSERV);
  return address.ai_family == AF_INET6 ? fmt::format("[{}]:{}", host.data(), port.data())
                                       : fmt::format("{}:{}", host.data(), port.data());
}

}  // namespace

std::string resolve_address(const std::string& address, const std::string& who) {
  std::string reason;
  const AddressList all = look_up(address, reason);
  if (all == nullptr) bad_input("{}: cannot listen on '{}': {}", who, address, reason);
  for (const addrinfo* each = all.get(); each != nullptr; each = each->ai_next) {
    if (each->ai_family == AF_INET) return to_text(*each);
  }
  return to_text(*all);
}

std::string why_not_listen(const std::string& resolved) {
  std::string reason;
  const AddressList address = look_up(resolved, reason);
  if (address == nullptr) return fmt::format("{} {}", resolved, reason);
  const UniqueFd socket(::socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int yes = 1;  // as gRPC does: connections that are still closing are no hindrance
  setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (bind(socket.get(), address->ai_addr, address->ai_addrlen) == 0 && listen(socket.get(), 1) == 0) return "";
  if (errno == EADDRINUSE) {
    return resolved + " is in use; another process, or a second task with this index, listens there";
  }
  if (errno == EADDRNOTAVAIL) {
    return resolved + " is no address of this host; the list of tasks or this task's index is wrong";
  }
  return fmt::format("cannot listen on {}: {}", resolved, std::strerror(errno));
}

}  // namespace trireme::comm::rpc
