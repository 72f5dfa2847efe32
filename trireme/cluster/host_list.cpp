#include "trireme/cluster/host_list.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <functional>
#include <numeric>
#include <regex>
#include <sstream>
#include <utility>

#include "trireme/base/error.hpp"
#include "trireme/base/parse.hpp"

namespace trireme::cluster {
namespace {

constexpr int kMostWorkers = 100'000;
constexpr const char* kNotInNames = " \t'\"\\[]";

int parse_count(const std::string& text, const std::string& host, const std::string& source) {
  const int count = parse_number<int>(text).value_or(0);
  if (count < 1 || count > kMostWorkers) {
    bad_input("{}: '{}' of host {}: must be a number of workers from 1 to {}", source, text, host, kMostWorkers);
  }
  return count;
}

// "fd00::7", or with its interface "fe80::7%eth0".
bool is_ipv6(const std::string& text) {
  if (text.find_first_of(kNotInNames) != std::string::npos) return false;
  in6_addr address{};
  return inet_pton(AF_INET6, text.substr(0, text.find('%')).c_str(), &address) == 1;
}

// A name that begins with '-' would be an ssh option.
bool is_name(const std::string& text) {
  return !text.empty() && text.front() != '-' && text.find(':') == std::string::npos &&
         text.find_first_of(kNotInNames) == std::string::npos;
}

// "a:2" gives "a" and ":2"; "[fd00::7]:2" loses its brackets. IPv6 without brackets has no number.
std::pair<std::string, std::string> split_host(const std::string& text) {
  if (is_ipv6(text)) return {text, ""};
  const std::size_t bracket = text.find(']');
  if (text.starts_with('[') && bracket != std::string::npos) {
    return {text.substr(1, bracket - 1), text.substr(bracket + 1)};
  }
  const std::size_t colon = std::min(text.find(':'), text.size());
  return {text.substr(0, colon), text.substr(colon)};
}

HostSlots parse_host(const std::string& text, const std::string& source) {
  const auto [name, rest] = split_host(text);
  const bool is_host = text.starts_with('[') ? is_ipv6(name) : is_name(name) || is_ipv6(name);
  if (!is_host || !(rest.empty() || rest.front() == ':')) {
    bad_input(
        "{}: '{}' is not a host; a name or address is needed, or one with a number of workers, as in a:2 or "
        "[fd00::7]:2",
        source, text);
  }
  HostSlots host{.name = name};
  if (!rest.empty()) host.workers = parse_count(rest.substr(1), name, source);
  return host;
}

void check_all_differ(const std::vector<HostSlots>& hosts, const std::string& source) {
  if (hosts.empty()) bad_input("{}: names no host", source);
  for (auto host = hosts.begin(); host != hosts.end(); ++host) {
    const auto is_same = [host](const HostSlots& other) { return other.name == host->name; };
    if (std::any_of(hosts.begin(), host, is_same)) {
      bad_input("{}: {} is listed twice; list it once, with the number of its workers, as in {}:2", source, host->name,
                is_ipv6(host->name) ? "[" + host->name + "]" : host->name);
    }
  }
}

// For hosts without a number. The first ones get the remainder.
std::vector<int> even_shares(int workers, std::size_t hosts) {
  const int count = static_cast<int>(hosts);
  std::vector<int> shares(hosts, workers / count);
  for (int i = 0; i < workers % count; ++i) ++shares[i];
  return shares;
}

std::vector<int> listed_shares(const std::vector<HostSlots>& hosts, int workers) {
  std::vector<int> shares;
  int left = workers;
  for (const HostSlots& host : hosts) {
    shares.push_back(std::min(left, host.workers.value_or(1)));
    left -= shares.back();
  }
  if (left > 0) {
    bad_input(
        "{} workers are more than the {} that the hosts can take; ask for fewer, or give the hosts higher numbers",
        workers, workers - left);
  }
  return shares;
}

// Skips no line: a wrong one may have its partner in the other file.
using ParseLine = std::function<std::string(const std::string& line, const std::string& source)>;

std::string without_spaces_around(const std::string& line) {
  constexpr const char* kSpaces = " \t\r";
  const std::size_t begin = line.find_first_not_of(kSpaces);
  return begin == std::string::npos ? "" : line.substr(begin, line.find_last_not_of(kSpaces) + 1 - begin);
}

// Names are allowed: ssh resolves them.
std::string parse_public(const std::string& line, const std::string& source) {
  constexpr const char* kAllowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.:-_%";
  if (line.front() == '-' || line.find_first_not_of(kAllowed) != std::string::npos) {
    bad_input("{}: '{}' is neither an address nor a host name", source, line);
  }
  return line;
}

// In the system's notation, for comparison with the host's own answer.
std::string parse_private(const std::string& line, const std::string& source) {
  const int family = line.find(':') == std::string::npos ? AF_INET : AF_INET6;
  std::array<unsigned char, sizeof(in6_addr)> bytes{};
  if (inet_pton(family, line.c_str(), bytes.data()) != 1) {
    bad_input("{}: '{}' is not an address such as 10.0.0.7", source, line);
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
    if (line.empty()) bad_input("{}: is empty; each line must be the address of a machine", source);
    const std::string address = parse(line, source);
    if (const auto same = std::ranges::find(addresses, address); same != addresses.end()) {
      bad_input("{}: {} is also on line {}", source, address, same - addresses.begin() + 1);
    }
    addresses.push_back(address);
  }
  if (addresses.empty()) bad_input("{} {}: contains no addresses", option, path);
  return addresses;
}

}  // namespace

std::vector<HostSlots> parse_hosts(const std::string& text, const std::string& source) {
  std::vector<HostSlots> hosts;
  std::istringstream items(text);
  for (std::string item; std::getline(items, item, ',');) hosts.push_back(parse_host(item, source));
  check_all_differ(hosts, source);
  return hosts;
}

std::vector<HostSlots> read_host_file(const std::string& path) {
  std::ifstream file(path);
  if (!file) bad_input("--hostfile {}: cannot be read", path);
  static const std::regex kLine(R"(\s*(\S+?)(?:\s+slots\s*=\s*(\S+))?\s*)");
  std::vector<HostSlots> hosts;
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    const std::string source = fmt::format("--hostfile {}, line {}", path, ++number);
    line.erase(std::min(line.find('#'), line.size()));
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    std::smatch parts;
    if (!std::regex_match(line, parts, kLine)) {
      bad_input("{}: '{}': must be a host, host:workers or host slots=workers", source, line);
    }
    hosts.push_back(parse_host(parts[1], source));
    if (parts[2].matched) hosts.back().workers = parse_count(parts[2], hosts.back().name, source);
  }
  check_all_differ(hosts, fmt::format("--hostfile {}", path));
  return hosts;
}

std::vector<HostSlots> read_address_files(const std::string& public_path, const std::string& private_path) {
  const auto reached = read_addresses("--public-ips", public_path, parse_public);
  const auto talking = read_addresses("--private-ips", private_path, parse_private);
  if (reached.size() != talking.size()) {
    bad_input(
        "--public-ips {} has {} addresses and --private-ips {} has {}; each line must be the same machine in both",
        public_path, reached.size(), private_path, talking.size());
  }
  std::vector<HostSlots> hosts;
  for (std::size_t i = 0; i < reached.size(); ++i) hosts.push_back({.name = reached[i], .address = talking[i]});
  return hosts;
}

int usual_workers(const std::vector<HostSlots>& hosts) {
  return std::accumulate(hosts.begin(), hosts.end(), 0,
                         [](int sum, const HostSlots& host) { return sum + host.workers.value_or(1); });
}

std::vector<HostTasks> spread_tasks(const std::vector<HostSlots>& hosts, const comm::JobSize& size) {
  if (size.workers < 1) bad_input("--workers {}: must be at least 1", size.workers);
  if (size.servers < 0) bad_input("--ps {}: must be 0 or more", size.servers);
  const bool is_listed = std::ranges::any_of(hosts, [](const HostSlots& host) { return host.workers.has_value(); });
  const std::vector<int> workers =
      is_listed ? listed_shares(hosts, size.workers) : even_shares(size.workers, hosts.size());
  std::vector<HostTasks> tasks;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    if (workers[i] == 0) continue;
    tasks.push_back(
        {.host = hosts[i].name, .size = {.workers = workers[i], .servers = 0}, .address = hosts[i].address});
  }
  for (int i = 0; i < size.servers; ++i) ++tasks[i % tasks.size()].size.servers;
  return tasks;
}

}  // namespace trireme::cluster
