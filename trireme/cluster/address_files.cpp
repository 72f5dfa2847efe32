#include "trireme/cluster/address_files.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <functional>

#include "trireme/base/error.hpp"

namespace trireme::cluster {
namespace {

// A line that is wrong may have its partner in the other file: nothing is skipped.
using ParseLine = std::function<std::string(const std::string& line, const std::string& source)>;

std::string without_spaces_around(const std::string& line) {
  constexpr const char* kSpaces = " \t\r";
  const std::size_t begin = line.find_first_not_of(kSpaces);
  return begin == std::string::npos ? "" : line.substr(begin, line.find_last_not_of(kSpaces) + 1 - begin);
}

// Names are as good as addresses here: ssh looks them up.
std::string parse_public(const std::string& line, const std::string& source) {
  constexpr const char* kAllowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.:-_%";
  if (line.front() == '-' || line.find_first_not_of(kAllowed) != std::string::npos) {
    bad_input("{}: '{}' is not an address, or the name of a host", source, line);
  }
  return line;
}

// In the way that the system writes it, so that it can be compared with what a host says.
std::string parse_private(const std::string& line, const std::string& source) {
  const int family = line.find(':') == std::string::npos ? AF_INET : AF_INET6;
  std::array<unsigned char, sizeof(in6_addr)> bytes{};
  if (inet_pton(family, line.c_str(), bytes.data()) != 1) {
    bad_input("{}: '{}' is not an address, as 10.0.0.7 is", source, line);
  }
  std::array<char, INET6_ADDRSTRLEN> text{};
  return inet_ntop(family, bytes.data(), text.data(), text.size());
}

std::vector<std::string> read_addresses(const std::string& option, const std::string& path, const ParseLine& parse) {
  std::ifstream file(path);
  if (!file) bad_input("{} {}: cannot be read", option, path);
  std::vector<std::string> addresses;
  for (std::string line; std::getline(file, line);) {
    const std::string source = fmt::format("{} {}, line {}", option, path, addresses.size() + 1);
    line = without_spaces_around(line);
    if (line.empty()) bad_input("{}: is empty; each line has to be the address of a machine", source);
    const std::string address = parse(line, source);
    if (const auto same = std::find(addresses.begin(), addresses.end(), address); same != addresses.end()) {
      bad_input("{}: {} is also on line {}", source, address, same - addresses.begin() + 1);
    }
    addresses.push_back(address);
  }
  if (addresses.empty()) bad_input("{} {}: has no address", option, path);
  return addresses;
}

}  // namespace

std::vector<HostSlots> read_address_files(const std::string& public_path, const std::string& private_path) {
  const auto reached = read_addresses("--public-ips", public_path, parse_public);
  const auto talking = read_addresses("--private-ips", private_path, parse_private);
  if (reached.size() != talking.size()) {
    bad_input(
        "--public-ips {} has {} addresses and --private-ips {} has {}; line by line they have to be the same machine",
        public_path, reached.size(), private_path, talking.size());
  }
  std::vector<HostSlots> hosts;
  for (std::size_t i = 0; i < reached.size(); ++i) hosts.push_back({.name = reached[i], .address = talking[i]});
  return hosts;
}

}  // namespace trireme::cluster
