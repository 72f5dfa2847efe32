#include "trireme/cluster/host_check.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <sstream>

#include "trireme/base/clock.hpp"
#include "trireme/cluster/child_process.hpp"
#include "trireme/cluster/environment.hpp"
#include "trireme/cluster/greeting.hpp"
#include "trireme/perf/build_info.hpp"
#include "trireme/perf/cgroup.hpp"
#include "trireme/perf/topology.hpp"

namespace trireme::cluster {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

constexpr auto kPatience = 30s;

std::vector<std::string> probe_command(const RemoteHost& host) {
  std::vector<std::string> words{host.program, "launch-probe"};
  add_port_options(host.ports, words);
  return words;
}

// One query under way, and its output so far.
class Probe {
 public:
  Probe(const RemoteHost& host, const HostReach& reach);

  bool is_over() const { return ending_ || is_chattering(); }
  std::array<pollfd, 3> descriptors() const {
    return {pollfd{probe_.out.get(), POLLIN, 0}, pollfd{probe_.err.get(), POLLIN, 0},
            pollfd{probe_.process.poll_descriptor(), POLLIN, 0}};
  }
  void look();
  HostAnswer answer() const;

 private:
  std::string problem() const;
  bool is_greeted() const { return behind_greeting(said_) != std::string::npos; }
  bool is_chattering() const { return said_.size() > kMostChatter + kHostGreeting.size() && !is_greeted(); }

  RemoteHost host_;
  HostReach reach_;
  double asked_ = seconds_since_1970(), answered_ = 0;
  PipedProcess probe_;
  std::string said_, complained_;
  std::optional<Ending> ending_;
};

Probe::Probe(const RemoteHost& host, const HostReach& reach)
    : host_(host), reach_(reach), probe_(start_piped(reach.command(host.name, probe_command(host)))) {
  [[maybe_unused]] const ssize_t fits = write(probe_.in.get(), kLauncherGreeting.data(), kLauncherGreeting.size());
  probe_.in.reset();
}

void Probe::look() {
  constexpr std::size_t kEnough = 1U << 20U;  // a shell may print endlessly
  ending_ = probe_.process.try_wait();        // before reading, so that the output is complete
  const bool was_greeted = is_greeted();
  read_available(probe_.out, said_, kEnough);
  read_available(probe_.err, complained_, kEnough);
  if (!was_greeted && is_greeted()) answered_ = seconds_since_1970();
}

std::string Probe::problem() const {
  const std::string words = last_words(complained_, reach_);
  if (is_chattering()) return kChatterProblem;
  if (!ending_)
    return fmt::format("does not answer within {} s{}{}", kPatience.count(), words.empty() ? "" : ": ", words);
  if (ending_->is_success()) return "";
  const int code = ending_->exit_code();
  if (std::string problem = reach_.failure(code, words); !problem.empty()) return problem;
  if (code == kNoSuchProgram || code == kCannotBeRun) {
    return fmt::format(
        "{} does not exist or cannot be run ({}); copy it there with --ship, or give its path with --remote-program",
        host_.program, words);
  }
  return words.empty() ? fmt::format("the check {}", ending_text(*ending_)) : words;
}

HostAnswer Probe::answer() const {
  HostAnswer answer{.problem = problem()};
  if (!answer.problem.empty()) return answer;
  try {
    const std::size_t begin = behind_greeting(said_);
    json::parse(begin == std::string::npos ? "" : said_.substr(begin)).get_to(answer.facts);
  } catch (const json::exception&) {
    answer.problem = fmt::format("answers with '{}', which is not trireme's answer",
                                 said_.substr(0, std::min<std::size_t>(80, said_.find('\n'))));
    return answer;
  }
  if (answer.facts.build != perf::build_text()) {
    answer.problem = fmt::format("has trireme {}, but this is {}; all hosts need the same build", answer.facts.build,
                                 perf::build_text());
  } else if (!answer.facts.hears_launcher) {
    answer.problem = fmt::format("does not receive the launcher's input: {}",
                                 reach_.is_container ? "--exec must pass on standard input (docker and podman: -i)"
                                                     : "something that its shell runs at startup reads standard input");
  }
  answer.clock_skew = answer.facts.time - (asked_ + answered_) / 2;
  answer.clock_error = (answered_ - asked_) / 2;
  return answer;
}

// The half that runs on the queried host.

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

// This host's source address towards the peer. Sends nothing.
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

// sshd sets "client port server port"; Slurm tells where srun started it from.
std::string read_reached_address() {
  std::istringstream words(environment_variable("SSH_CONNECTION"));
  std::string client, client_port, server;
  words >> client >> client_port >> server;
  return server.empty() ? address_towards(environment_variable("SLURM_LAUNCH_NODE_IPADDR")) : server;
}

// Slurm counts logical processors, and does not bind us to ours on every cluster. 0: not set.
int read_slurm_cores(const std::vector<std::vector<int>>& cores) {
  const int processors = std::atoi(environment_variable("SLURM_CPUS_ON_NODE").c_str());
  if (processors < 1 || cores.empty()) return 0;
  return std::max(1, processors / static_cast<int>(cores.front().size()));
}

}  // namespace

std::vector<HostAnswer> ask_hosts(const std::vector<RemoteHost>& hosts, const HostReach& reach) {
  std::vector<Probe> probes;
  probes.reserve(hosts.size());
  for (const RemoteHost& host : hosts) probes.emplace_back(host, reach);
  const auto deadline = SteadyClock::now() + kPatience;
  const auto is_over = [](const Probe& probe) { return probe.is_over(); };
  while (!std::ranges::all_of(probes, is_over) && SteadyClock::now() < deadline) {
    std::vector<pollfd> polled;
    for (const Probe& probe : probes) {
      if (probe.is_over()) continue;
      const auto descriptors = probe.descriptors();
      polled.insert(polled.end(), descriptors.begin(), descriptors.end());
    }
    poll(polled.data(), polled.size(), 1000);
    for (Probe& probe : probes) {
      if (!probe.is_over()) probe.look();
    }
  }
  std::vector<HostAnswer> answers;
  for (const Probe& probe : probes) answers.push_back(probe.answer());
  return answers;
}

// Refuses requested ports in use early. Does not even try others: another launch may have requested them.
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
  facts.time = seconds_since_1970();
  return facts;
}

bool hears_launcher() {
  std::string heard;
  constexpr int kPatience = 5000;  // ms; without a sender, input ends at once
  pollfd polled{STDIN_FILENO, POLLIN, 0};
  char byte = 0;
  while (heard != kLauncherGreeting && poll(&polled, 1, kPatience) == 1 && read(STDIN_FILENO, &byte, 1) == 1)
    heard += byte;
  return heard == kLauncherGreeting;
}

}  // namespace trireme::cluster
