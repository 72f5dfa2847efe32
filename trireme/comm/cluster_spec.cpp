#include "trireme/comm/cluster_spec.hpp"

#include <arpa/inet.h>
#include <fmt/ranges.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "trireme/base/error.hpp"
#include "trireme/base/new_file.hpp"
#include "trireme/base/parse.hpp"

namespace trireme::comm {
namespace {

using nlohmann::json;

bool is_ipv6(const std::string& host) {
  in6_addr ignored{};
  return inet_pton(AF_INET6, host.c_str(), &ignored) == 1;
}

bool is_host_name(std::string_view host) {
  const auto is_allowed = [](unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
           c == '_';
  };
  return !host.empty() && std::all_of(host.begin(), host.end(), is_allowed);
}

// "[::1]" becomes "::1"; other hosts stay unchanged.
std::string parse_host(std::string_view host, std::string_view address, std::string_view source) {
  if (host.starts_with('[') && host.ends_with(']')) {
    std::string inside(host.substr(1, host.size() - 2));
    if (!is_ipv6(inside)) bad_input("{}: '{}': there is no IPv6 address between the brackets", source, address);
    return inside;
  }
  if (host.find(':') != std::string_view::npos) {
    bad_input("{}: '{}': write an IPv6 address in brackets, as in [::1]:2220", source, address);
  }
  if (!is_host_name(host)) {
    bad_input("{}: '{}' is not an address; write host:port, as in node7:2220", source, address);
  }
  return std::string(host);
}

std::vector<std::string> split_list(const std::string& text) {
  std::vector<std::string> parts;
  if (text.empty()) return parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

struct Sources {
  std::string workers, servers;
};

// Requires valid addresses without duplicates and at least one worker.
ClusterSpec checked(ClusterSpec spec, const Sources& sources) {
  if (spec.workers.empty()) bad_input("{}: a cluster needs at least one worker", sources.workers);
  std::map<std::string, TaskPlace> owners;
  for (int rank = 0; rank < spec.size(); ++rank) {
    const TaskPlace place = spec.place_of(rank);
    const std::string& source = place.is_server() ? sources.servers : sources.workers;
    const Address address = parse_address(spec.address_of(place), source);
    std::string key = fmt::format("{} {}", address.host, address.port);
    std::transform(key.begin(), key.end(), key.begin(), [](unsigned char c) { return std::tolower(c); });
    const auto [first, is_new] = owners.emplace(key, place);
    if (!is_new) {
      bad_input("{}: {} is listed twice, for {} and for {}; each task needs its own address", source,
                spec.address_of(place), to_string(first->second), to_string(place));
    }
  }
  return spec;
}

void check_job(const std::string& job, const std::string& source) {
  if (job == kWorkerJob || job == kServerJob) return;
  if (job == "chief" || job == "master") {
    bad_input("{}: there is no job '{}': worker 0 acts as the chief; list it as the first worker", source, job);
  }
  bad_input("{}: unknown job '{}'; the jobs are worker and ps", source, job);
}

std::vector<std::string> addresses_of(const json& list, const std::string& source) {
  const bool is_list =
      list.is_array() && std::all_of(list.begin(), list.end(), [](const json& address) { return address.is_string(); });
  if (!is_list) bad_input("{}: must be a list of strings, as in [\"node7:2220\", \"node8:2220\"]", source);
  return list.get<std::vector<std::string>>();
}

ClusterSpec spec_from_json(const json& jobs, const std::string& source) {
  if (!jobs.is_object()) {
    bad_input("{}: must be a JSON object of jobs, as in {{\"worker\": [\"node7:2220\"], \"ps\": [\"node7:2230\"]}}",
              source);
  }
  const Sources sources{source + ": \"worker\"", source + ": \"ps\""};
  ClusterSpec spec;
  for (const auto& [job, list] : jobs.items()) {
    check_job(job, source);
    if (job == kWorkerJob) spec.workers = addresses_of(list, sources.workers);
    if (job == kServerJob) spec.servers = addresses_of(list, sources.servers);
  }
  return checked(std::move(spec), sources);
}

TaskPlace place_from_json(const json& task, const std::string& source) {
  const bool is_task = task.is_object() && task.contains("type") && task["type"].is_string() &&
                       task.contains("index") && task["index"].is_number_integer();
  if (!is_task) bad_input("{}: must be a JSON object like {{\"type\": \"worker\", \"index\": 0}}", source);
  constexpr std::int64_t kLast = std::numeric_limits<int>::max();
  return {.job = task["type"],
          .index = static_cast<int>(std::clamp<std::int64_t>(task["index"].get<std::int64_t>(), -1, kLast))};
}

// "10.0.0.5", "fe80::1"; empty if not an internet address.
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
  // Addresses known to others come first.
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

std::string to_string(const TaskPlace& place) { return fmt::format("{} {}", place.job, place.index); }

int ClusterSpec::rank_of(const TaskPlace& place) const {
  return place.is_server() ? static_cast<int>(workers.size()) + place.index : place.index;
}

TaskPlace ClusterSpec::place_of(int rank) const {
  const int worker_count = static_cast<int>(workers.size());
  if (rank < worker_count) return {.job = kWorkerJob, .index = rank};
  return {.job = kServerJob, .index = rank - worker_count};
}

const std::string& ClusterSpec::address_of(const TaskPlace& place) const {
  return (place.is_server() ? servers : workers).at(place.index);
}

ClusterSpec cluster_from_lists(const std::string& worker_hosts, const std::string& ps_hosts) {
  return checked({.workers = split_list(worker_hosts), .servers = split_list(ps_hosts)},
                 {"--worker-hosts", "--ps-hosts"});
}

ClusterDescription cluster_from_json(const std::string& text, const std::string& source) {
  const json parsed = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (parsed.is_discarded()) bad_input("{}: not valid JSON", source);
  if (!parsed.is_object() || !parsed.contains("cluster")) return {.spec = spec_from_json(parsed, source)};
  ClusterDescription description{.spec = spec_from_json(parsed["cluster"], source + ": \"cluster\"")};
  if (parsed.contains("task")) {
    const std::string task = source + ": \"task\"";
    description.task = place_from_json(parsed["task"], task);
    check_place(description.spec, *description.task, task, task);
  }
  return description;
}

ClusterDescription read_cluster_file(const std::string& path) {
  const std::string text = read_text(path);
  if (text.empty()) bad_input("--cluster {}: cannot read this file, or it is empty", path);
  return cluster_from_json(text, fmt::format("--cluster {}", path));
}

std::string to_json_text(const ClusterSpec& spec) {
  return json{{kWorkerJob, spec.workers}, {kServerJob, spec.servers}}.dump();
}

void check_place(const ClusterSpec& spec, const TaskPlace& place, const std::string& job_source,
                 const std::string& index_source) {
  check_job(place.job, job_source);
  const int count = static_cast<int>((place.is_server() ? spec.servers : spec.workers).size());
  const std::string_view tasks = place.is_server() ? "servers" : "workers";
  if (count == 0) bad_input("{} {}: there are no {} in this cluster", job_source, place.job, tasks);
  if (place.index >= 0 && place.index < count) return;
  if (count == 1) bad_input("{} {}: there is only {} 0", index_source, place.index, place.job);
  bad_input("{} {}: there are {} 0 to {}", index_source, place.index, tasks, count - 1);
}

Address parse_address(std::string_view text, std::string_view source) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || text.ends_with(']')) {
    bad_input("{}: '{}' has no port; write host:port, as in node7:2220", source, text);
  }
  Address address{.host = parse_host(text.substr(0, colon), text, source)};
  constexpr int kLastPort = 65535;
  address.port = parse_number<int>(text.substr(colon + 1)).value_or(0);
  if (address.port < 1 || address.port > kLastPort) {
    bad_input("{}: '{}': the port must be a number from 1 to {}", source, text, kLastPort);
  }
  if (address.host == "0.0.0.0" || address.host == "::") {
    bad_input("{}: '{}' matches every machine; give the address at which the other tasks can reach this one", source,
              text);
  }
  return address;
}

void check_is_local(const ClusterSpec& spec, const TaskPlace& place) {
  const std::string& address = spec.address_of(place);
  const std::string who = fmt::format("{} is to listen on {}", to_string(place), address);
  const std::vector<std::string> ours = addresses_of_this_machine();
  for (const std::string& wanted : addresses_of_host(parse_address(address, to_string(place)).host, who)) {
    if (wanted.starts_with("127.")) return;  // all of 127/8 is local, though only one address is listed
    if (std::find(ours.begin(), ours.end(), wanted) != ours.end()) return;
  }
  bad_input("{}, but this machine has {}; is --task-index right?", who, fmt::join(ours, ", "));
}

}  // namespace trireme::comm
