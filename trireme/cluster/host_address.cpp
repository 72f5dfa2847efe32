#include "trireme/cluster/host_address.hpp"

#include <arpa/inet.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>

#include "trireme/base/error.hpp"
#include "trireme/base/parse.hpp"

namespace trireme::cluster {
namespace {

const InterfaceAddress* find_address(const HostFacts& facts, const std::string& address) {
  const auto found =
      std::ranges::find_if(facts.addresses, [&](const InterfaceAddress& known) { return known.address == address; });
  return found == facts.addresses.end() ? nullptr : &*found;
}

std::string addresses_text(const HostFacts& facts) {
  std::vector<std::string> known;
  for (const InterfaceAddress& address : facts.addresses) {
    known.push_back(fmt::format("{} {}/{}", address.interface, address.address, address.prefix_bits));
  }
  return known.empty() ? "none" : fmt::format("{}", fmt::join(known, ", "));
}

struct Network {
  int family = AF_INET;
  std::array<unsigned char, 16> bytes{};
  int bits = 0;

  bool is_single_address() const { return bits == (family == AF_INET ? 32 : 128); }
  bool contains(const std::string& address) const {
    std::array<unsigned char, 16> other{};
    if (inet_pton(family, address.c_str(), other.data()) != 1) return false;
    for (int bit = 0; bit < bits; ++bit) {
      const std::size_t byte = bit / 8;
      if ((((bytes[byte] ^ other[byte]) >> (7 - bit % 8)) & 1) != 0) return false;
    }
    return true;
  }
};

Network parse_network(const std::string& text) {
  const std::size_t slash = text.find('/');
  const std::string address = text.substr(0, slash), bits = text.substr(slash + 1);
  Network network{.family = address.find(':') == std::string::npos ? AF_INET : AF_INET6};
  network.bits = parse_number<int>(bits).value_or(-1);
  const int most = network.family == AF_INET ? 32 : 128;
  if (inet_pton(network.family, address.c_str(), network.bytes.data()) != 1 || network.bits < 0 ||
      network.bits > most) {
    bad_input("--network {}: must be the name of an interface, such as eth0, or a network, such as 10.0.0.0/8", text);
  }
  return network;
}

Network network_around(const InterfaceAddress& address) {
  return parse_network(fmt::format("{}/{}", address.address, address.prefix_bits));
}

bool is_in_one_of(const std::vector<std::string>& networks, const std::string& address) {
  return std::ranges::any_of(networks,
                             [&](const std::string& network) { return parse_network(network).contains(address); });
}
bool is_loopback(const std::string& address) { return is_in_one_of({"127.0.0.0/8", "::1/128"}, address); }
bool is_link_local(const std::string& address) { return is_in_one_of({"169.254.0.0/16", "fe80::/10"}, address); }

std::string address_in(const KnownHost& host, const std::string& network) {
  const bool is_range = network.find('/') != std::string::npos;
  const Network range = is_range ? parse_network(network) : Network{};
  for (const InterfaceAddress& address : host.facts.addresses) {
    if (is_range ? range.contains(address.address) : address.interface == network) return address.address;
  }
  bad_input("--network {}: {} has no address there; it has {}", network, host.name, addresses_text(host.facts));
}

const InterfaceAddress& reached_address(const KnownHost& host) {
  const std::string& reached = host.facts.reached_address;
  if (reached.empty()) bad_input("{} does not know at which address it was reached; give --network", host.name);
  const InterfaceAddress* address = find_address(host.facts, reached);
  if (address == nullptr) {
    bad_input(
        "{} was reached at {}, which is not among the addresses that trireme sees there ({}); give --network; a "
        "container needs the network of its host (docker and podman: --network host)",
        host.name, reached, addresses_text(host.facts));
  }
  return *address;
}

// As far as known: some clouds give each machine a network of just its own address.
bool are_in_one_network(const std::vector<InterfaceAddress>& addresses) {
  const Network first = network_around(addresses.front());
  return std::ranges::all_of(addresses, [&](const InterfaceAddress& address) {
    if (is_loopback(address.address)) return addresses.size() == 1;
    const Network network = network_around(address);
    return first.is_single_address() || network.is_single_address() ||
           (first.contains(address.address) && network.contains(addresses.front().address));
  });
}

// Empty if a host has none there, or two share one: virtual bridges have equal addresses on all hosts.
std::vector<std::string> addresses_in(const Network& network, const std::vector<KnownHost>& hosts) {
  std::vector<std::string> chosen;
  for (const KnownHost& host : hosts) {
    for (const InterfaceAddress& address : host.facts.addresses) {
      if (!network.contains(address.address)) continue;
      chosen.push_back(address.address);
      break;
    }
  }
  const bool all_differ = std::set(chosen.begin(), chosen.end()).size() == hosts.size();
  return all_differ ? chosen : std::vector<std::string>{};
}

std::vector<std::string> addresses_in_shared_network(const std::vector<KnownHost>& hosts) {
  for (const InterfaceAddress& address : hosts.front().facts.addresses) {
    if (is_loopback(address.address) || is_link_local(address.address)) continue;
    if (auto chosen = addresses_in(network_around(address), hosts); !chosen.empty()) return chosen;
  }
  std::vector<std::string> known;
  for (const KnownHost& host : hosts) {
    known.push_back(fmt::format("{} was reached at {} and has {}", host.name, host.facts.reached_address,
                                addresses_text(host.facts)));
  }
  bad_input(
      "the hosts have no network in common; if they can reach each other anyway, give --network with a range that "
      "contains an address of each, such as 10.0.0.0/8: {}",
      fmt::join(known, "; "));
}

}  // namespace

std::vector<std::string> choose_addresses(const std::vector<KnownHost>& hosts, const std::string& network) {
  std::vector<std::string> chosen;
  if (!network.empty()) {
    for (const KnownHost& host : hosts) chosen.push_back(address_in(host, network));
    return chosen;
  }
  std::vector<InterfaceAddress> reached;
  for (const KnownHost& host : hosts) reached.push_back(reached_address(host));
  if (!are_in_one_network(reached)) return addresses_in_shared_network(hosts);
  for (const InterfaceAddress& address : reached) chosen.push_back(address.address);
  return chosen;
}

void check_has_address(const KnownHost& host, const std::string& address) {
  if (find_address(host.facts, address) != nullptr) return;
  bad_input(
      "--private-ips: {} is not an address of {}, which has {}; are the lines of the two files in the same order?",
      address, host.name, addresses_text(host.facts));
}

std::string network_of(const std::string& address, const HostFacts& facts) {
  const InterfaceAddress* found = find_address(facts, address);
  in_addr bytes{};
  if (found == nullptr || inet_pton(AF_INET, address.c_str(), &bytes) != 1) return "";
  const int bits = found->prefix_bits;
  bytes.s_addr &= htonl(bits == 0 ? 0 : ~0U << (32 - bits));
  std::array<char, INET_ADDRSTRLEN> text{};
  return fmt::format("{}/{}", inet_ntop(AF_INET, &bytes, text.data(), text.size()), bits);
}

}  // namespace trireme::cluster
