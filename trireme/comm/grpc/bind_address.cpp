#include "trireme/comm/grpc/bind_address.hpp"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include "trireme/base/error.hpp"

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

bool is_loopback(const addrinfo& address) {
  if (address.ai_family == AF_INET) {
    const auto* const socket = reinterpret_cast<const sockaddr_in*>(address.ai_addr);
    return ntohl(socket->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
  }
  return address.ai_family == AF_INET6 &&
         IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(address.ai_addr)->sin6_addr);
}

// Whether an address stands for nothing but this host itself.
bool is_loopback(const std::string& address) {
  std::string reason;
  const AddressList all = look_up(address, reason);
  for (const addrinfo* each = all.get(); each != nullptr; each = each->ai_next) {
    if (!is_loopback(*each)) return false;
  }
  return all != nullptr;
}

// How good an address is to listen on, of several that a name stands for.
int rank_of(const addrinfo& address) { return (is_loopback(address) ? 0 : 2) + (address.ai_family == AF_INET ? 1 : 0); }

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
  const addrinfo* best = all.get();
  for (const addrinfo* each = all.get(); each != nullptr; each = each->ai_next) {
    if (rank_of(*each) > rank_of(*best)) best = each;
  }
  return to_text(*best);
}

void check_reachable(const std::string& resolved, const std::vector<RpcTask>& tasks, int self) {
  if (!is_loopback(resolved)) return;
  const RpcTask& own = tasks[self];
  for (const RpcTask& task : tasks) {
    if (is_loopback(task.address)) continue;
    bad_input(
        "{}: {} is {} here, which no other host can reach, but {} is to be reached at {}; list the address that this "
        "host has in the network",
        own.name, own.address, resolved, task.name, task.address);
  }
}

UniqueFd listen_on(const std::string& resolved, const std::string& who, std::chrono::milliseconds answer_within) {
  std::string reason;
  const AddressList address = look_up(resolved, reason);
  if (address == nullptr) bad_input("{}: {} {}", who, resolved, reason);
  UniqueFd socket(::socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.is_open()) bad_input("{}: cannot listen on {}: {}", who, resolved, std::strerror(errno));
  const int yes = 1;  // connections that are still closing are no hindrance
  setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  const auto unanswered = static_cast<unsigned>(answer_within.count());
  setsockopt(socket.get(), IPPROTO_TCP, TCP_USER_TIMEOUT, &unanswered, sizeof unanswered);
  if (bind(socket.get(), address->ai_addr, address->ai_addrlen) == 0 && listen(socket.get(), SOMAXCONN) == 0) {
    return socket;
  }
  if (errno == EADDRINUSE) {
    bad_input("{}: {} is in use; another process, or a second task with this index, listens there", who, resolved);
  }
  if (errno == EADDRNOTAVAIL) {
    bad_input("{}: {} is not an address of this host; the list of tasks or this task's index is wrong", who, resolved);
  }
  bad_input("{}: cannot listen on {}: {}", who, resolved, std::strerror(errno));
}

}  // namespace trireme::comm::rpc
