// The half of host_check.hpp that runs on the host that is asked.
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "trireme/base/unique_fd.hpp"
#include "trireme/cluster/greeting.hpp"
#include "trireme/cluster/host_check.hpp"
#include "trireme/perf/build_info.hpp"
#include "trireme/perf/cgroup.hpp"
#include "trireme/perf/topology.hpp"

namespace trireme::cluster {
namespace {

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

std::string from_environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

// The address of this host from which it would talk to that one. Nothing is sent.
std::string address_towards(const std::string& peer) {
  sockaddr_in address{.sin_family = AF_INET, .sin_port = htons(9), .sin_addr = {}, .sin_zero = {}};
  const UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  socklen_t length = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (inet_pton(AF_INET, peer.c_str(), &address.sin_addr) != 1 || connect(socket.get(), generic, length) != 0 ||
      getsockname(socket.get(), generic, &length) != 0) {
    return "";
  }
  std::array<char, INET_ADDRSTRLEN> text{};
  return inet_ntop(AF_INET, &address.sin_addr, text.data(), text.size());
}

// sshd tells what it starts "client port server port"; Slurm tells from where srun has started it.
std::string read_reached_address() {
  std::istringstream words(from_environment("SSH_CONNECTION"));
  std::string client, client_port, server;
  words >> client >> client_port >> server;
  return server.empty() ? address_towards(from_environment("SLURM_LAUNCH_NODE_IPADDR")) : server;
}

// Slurm counts logical processors, and does not keep us on ours on every cluster. 0: it says nothing.
int read_slurm_cores(const std::vector<std::vector<int>>& cores) {
  const int processors = std::atoi(from_environment("SLURM_CPUS_ON_NODE").c_str());
  if (processors < 1 || cores.empty()) return 0;
  return std::max(1, processors / static_cast<int>(cores.front().size()));
}

}  // namespace

// Those that are asked for are refused now rather than when the job starts. Others are the agent's business, and not
// even claimed for a moment: another launch may have asked for them.
HostFacts read_host_facts(const PortsWanted& ports) {
  PortClaims claims;
  if (ports.first_worker || ports.first_server) claim_ports(ports, claims);
  HostFacts facts;
  facts.build = perf::build_text();
  facts.cores = perf::Topology().usable_cores();
  facts.core_limit = perf::within_quota(static_cast<int>(facts.cores.size()), perf::cpu_quota());
  if (const int granted = read_slurm_cores(facts.cores); granted > 0) {
    facts.core_limit = std::min(facts.core_limit, granted);
  }
  facts.addresses = read_addresses();
  facts.reached_address = read_reached_address();
  facts.time = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  return facts;
}

bool hears_launcher() {
  std::string heard;
  constexpr int kPatience = 5000;  // ms; where there is nobody to speak, input ends at once
  pollfd polled{STDIN_FILENO, POLLIN, 0};
  char byte = 0;
  while (heard != kLauncherGreeting && poll(&polled, 1, kPatience) == 1 && read(STDIN_FILENO, &byte, 1) == 1)
    heard += byte;
  return heard == kLauncherGreeting;
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
          {"reached_address", facts.reached_address},
          {"time", facts.time},
          {"hears_launcher", facts.hears_launcher}};
}

}  // namespace trireme::cluster
