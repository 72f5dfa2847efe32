#include "trireme/cluster/ports.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <numeric>

#include "trireme/base/error.hpp"
#include "trireme/cluster/channel.hpp"

namespace trireme::cluster {
namespace {

constexpr int kLastPort = 65535;
constexpr int kUsualWorkerPort = 2220, kUsualServerPort = 2230;

bool can_listen(const UniqueFd& tried, const sockaddr* address, socklen_t length) {
  const int yes = 1;
  setsockopt(tried.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  return bind(tried.get(), address, length) == 0 && listen(tried.get(), 1) == 0;
}

bool can_listen_ipv4(int port) {
  const UniqueFd tried(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  return can_listen(tried, reinterpret_cast<const sockaddr*>(&address), sizeof address);
}

// Also true if this machine has no IPv6.
bool can_listen_ipv6(int port) {
  const UniqueFd tried(socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!tried.is_open()) return errno == EAFNOSUPPORT;
  const int yes = 1;
  setsockopt(tried.get(), IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof yes);
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(static_cast<std::uint16_t>(port));
  return can_listen(tried, reinterpret_cast<const sockaddr*>(&address), sizeof address) || errno == EADDRNOTAVAIL;
}

// Tries to listen on all addresses, since the server's is unknown here. Ignores lingering old connections.
bool can_listen(int port) { return can_listen_ipv4(port) && can_listen_ipv6(port); }

PortRange worker_range(const PortsWanted& wanted) {
  return {"--worker-port", wanted.first_worker, kUsualWorkerPort, wanted.tasks.workers};
}
PortRange server_range(const PortsWanted& wanted) {
  return {"--ps-port", wanted.first_server, kUsualServerPort, wanted.tasks.servers};
}

}  // namespace

bool PortClaims::try_claim(int port) {
  UniqueFd name = bind_name(fmt::format("trireme-port-{}", port));
  if (!name.is_open() || !can_listen(port)) return false;
  claims_.push_back(std::move(name));
  return true;
}

std::vector<int> PortClaims::claim(const PortRange& range) {
  std::vector<int> ports;
  int port = range.first.value_or(range.usual_first);
  if (range.first && (port < 1 || port > kLastPort - range.count + 1)) {
    bad_input("{} {}: must be from 1 to {}, to leave room for {} tasks", range.option, port,
              kLastPort - range.count + 1, range.count);
  }
  for (; std::ssize(ports) < range.count && port <= kLastPort; ++port) {
    if (try_claim(port)) {
      ports.push_back(port);
    } else if (range.first) {
      bad_input("{} {}: port {} is in use on this machine, or may not be used", range.option, *range.first, port);
    }
  }
  if (std::ssize(ports) < range.count) {
    fail(ErrorKind::unavailable, "cannot find {} free ports from {} on", range.count, range.usual_first);
  }
  return ports;
}

TaskPorts claim_ports(const PortsWanted& wanted, PortClaims& claims) {
  TaskPorts ports;
  if (wanted.first_server) ports.servers = claims.claim(server_range(wanted));  // fixed ports before flexible ones
  ports.workers = claims.claim(worker_range(wanted));
  if (!wanted.first_server) ports.servers = claims.claim(server_range(wanted));
  return ports;
}

TaskPorts expected_ports(const PortsWanted& wanted) {
  const auto from_first = [](const PortRange& range) {
    std::vector<int> ports(range.count);
    std::iota(ports.begin(), ports.end(), range.first.value_or(range.usual_first));
    return ports;
  };
  TaskPorts ports{.workers = from_first(worker_range(wanted))};
  PortRange servers = server_range(wanted);
  if (!ports.workers.empty()) servers.usual_first = std::max(servers.usual_first, ports.workers.back() + 1);
  ports.servers = from_first(servers);
  return ports;
}

}  // namespace trireme::cluster
