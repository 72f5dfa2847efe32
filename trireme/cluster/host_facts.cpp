// The half of host_check.hpp that runs on the host that is asked.
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "trireme/cluster/host_check.hpp"
#include "trireme/perf/build_info.hpp"
#include "trireme/perf/cgroup.hpp"
#include "trireme/perf/topology.hpp"

namespace trireme::cluster {
namespace {

constexpr int kUsualWorkerPort = 2220, kUsualServerPort = 2230;

template <typename Mask>
int count_bits(const Mask& mask) {
  int bits = 0;
  const auto* bytes = reinterpret_cast<const unsigned char*>(&mask);
  for (std::size_t i = 0; i < sizeof mask; ++i) bits += std::popcount(bytes[i]);
  return bits;
}

std::optional<InterfaceAddress> to_address(const ifaddrs& entry) {
  if (entry.ifa_addr == nullptr || entry.ifa_netmask == nullptr || (entry.ifa_flags & IFF_UP) == 0) return {};
  std::array<char, INET6_ADDRSTRLEN> text{};
  const int family = entry.ifa_addr->sa_family;
  if (family == AF_INET) {
    inet_ntop(family, &reinterpret_cast<const sockaddr_in*>(entry.ifa_addr)->sin_addr, text.data(), text.size());
    const int bits = count_bits(reinterpret_cast<const sockaddr_in*>(entry.ifa_netmask)->sin_addr);
    return InterfaceAddress{entry.ifa_name, text.data(), bits};
  }
  if (family != AF_INET6) return {};
  const in6_addr& address = reinterpret_cast<const sockaddr_in6*>(entry.ifa_addr)->sin6_addr;
  if (IN6_IS_ADDR_LINKLOCAL(&address)) return {};
  inet_ntop(family, &address, text.data(), text.size());
  return InterfaceAddress{entry.ifa_name, text.data(),
                          count_bits(reinterpret_cast<const sockaddr_in6*>(entry.ifa_netmask)->sin6_addr)};
}

std::vector<InterfaceAddress> read_addresses() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return {};
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, freeifaddrs);
  std::vector<InterfaceAddress> addresses;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (auto address = to_address(*entry)) addresses.push_back(std::move(*address));
  }
  return addresses;
}

// "client port server port", as sshd tells it to what it starts.
std::string read_ssh_address() {
  const char* connection = std::getenv("SSH_CONNECTION");
  std::istringstream words(connection != nullptr ? connection : "");
  std::string client, client_port, server;
  words >> client >> client_port >> server;
  return server;
}

}  // namespace

TaskPorts claim_ports(const PortsWanted& wanted, PortClaims& claims) {
  const PortRange workers{"--worker-port", wanted.first_worker, kUsualWorkerPort, wanted.tasks.workers};
  const PortRange servers{"--ps-port", wanted.first_server, kUsualServerPort, wanted.tasks.servers};
  TaskPorts ports;
  if (wanted.first_server) ports.servers = claims.claim(servers);  // what is asked for comes before what gives way
  ports.workers = claims.claim(workers);
  if (!wanted.first_server) ports.servers = claims.claim(servers);
  return ports;
}

HostFacts read_host_facts(const PortsWanted& ports) {
  PortClaims claims;
  HostFacts facts;
  facts.build = perf::build_text();
  facts.cores = perf::Topology().usable_cores();
  facts.core_limit = perf::within_quota(static_cast<int>(facts.cores.size()), perf::cpu_quota());
  facts.addresses = read_addresses();
  facts.ssh_address = read_ssh_address();
  facts.ports = claim_ports(ports, claims);
  facts.time = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  return facts;
}

bool hears_launcher() {
  std::string heard;
  constexpr int kPatience = 5000;  // ms; where there is nobody to speak, input ends at once
  pollfd polled{STDIN_FILENO, POLLIN, 0};
  char byte = 0;
  while (heard != kGreeting && poll(&polled, 1, kPatience) == 1 && read(STDIN_FILENO, &byte, 1) == 1) heard += byte;
  return heard == kGreeting;
}

nlohmann::json to_json(const HostFacts& facts) {
  nlohmann::json addresses = nlohmann::json::array();
  for (const InterfaceAddress& address : facts.addresses) {
    addresses.push_back({address.interface, address.address, address.prefix_bits});
  }
  return {{"build", facts.build},
          {"cores", facts.cores},
          {"core_limit", facts.core_limit},
          {"addresses", addresses},
          {"ssh_address", facts.ssh_address},
          {"worker_ports", facts.ports.workers},
          {"ps_ports", facts.ports.servers},
          {"time", facts.time},
          {"hears_launcher", facts.hears_launcher}};
}

}  // namespace trireme::cluster
