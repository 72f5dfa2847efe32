#include <arpa/inet.h>
#include <fmt/ranges.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <memory>

#include "trireme/base/error.hpp"
#include "trireme/comm/cluster_spec.hpp"

namespace trireme::comm {
namespace {

// "10.0.0.5", "fe80::1"; empty for what is no internet address.
std::string text_of(const sockaddr* address) {
  std::string text(INET6_ADDRSTRLEN, '\0');
  const void* bytes = nullptr;
  if (address->sa_family == AF_INET) bytes = &reinterpret_cast<const sockaddr_in*>(address)->sin_addr;
  if (address->sa_family == AF_INET6) bytes = &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
  if (bytes == nullptr) return "";
  inet_ntop(address->sa_family, bytes, text.data(), static_cast<socklen_t>(text.size()));
  text.resize(text.find('\0'));
  return text;
}

std::vector<std::string> addresses_of_this_machine() {
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> interfaces(first, freeifaddrs);
  std::vector<std::string> addresses;
  for (const ifaddrs* interface = first; interface != nullptr; interface = interface->ifa_next) {
    if (interface->ifa_addr == nullptr) continue;
    const std::string text = text_of(interface->ifa_addr);
    const bool known = std::find(addresses.begin(), addresses.end(), text) != addresses.end();
    if (!text.empty() && !known) addresses.push_back(text);
  }
  // What others may know it by comes first.
  std::stable_partition(addresses.begin(), addresses.end(),
                        [](const std::string& address) { return !address.starts_with("127.") && address != "::1"; });
  return addresses;
}

std::vector<std::string> addresses_of_host(const std::string& host, const std::string& who) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* first = nullptr;
  if (const int error = getaddrinfo(host.c_str(), nullptr, &hints, &first); error != 0) {
    bad_input("{}, but the name {} is not known on this machine: {}", who, host, gai_strerror(error));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> found(first, freeaddrinfo);
  std::vector<std::string> addresses;
  for (const addrinfo* address = first; address != nullptr; address = address->ai_next) {
    addresses.push_back(text_of(address->ai_addr));
  }
  return addresses;
}

}  // namespace

void check_is_local(const ClusterSpec& spec, const TaskPlace& place) {
  const std::string& address = spec.address_of(place);
  const std::string who = fmt::format("{} is to listen on {}", to_string(place), address);
  const std::vector<std::string> ours = addresses_of_this_machine();
  for (const std::string& wanted : addresses_of_host(parse_address(address, to_string(place)).host, who)) {
    if (wanted.starts_with("127.")) return;  // all of them, though one alone is listed
    if (std::find(ours.begin(), ours.end(), wanted) != ours.end()) return;
  }
  bad_input("{}, but this machine has {}; is --task-index right?", who, fmt::join(ours, ", "));
}

}  // namespace trireme::comm
