#include "trireme/cluster/launch_hosts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>

#include "trireme/base/error.hpp"
#include "trireme/base/units.hpp"
#include "trireme/cluster/host_address.hpp"
#include "trireme/cluster/host_list.hpp"
#include "trireme/cluster/host_reach.hpp"
#include "trireme/cluster/ship.hpp"
#include "trireme/cluster/slurm.hpp"
#include "trireme/comm/host.hpp"

namespace trireme::cluster {
namespace {

constexpr double kMuchSkew = 1;  // seconds: beyond this, times in records of different hosts are not comparable

std::vector<std::string> addresses(const std::string& host, const std::vector<int>& ports) {
  const bool is_ipv6 = host.find(':') != std::string::npos;
  std::vector<std::string> texts;
  for (const int port : ports)
    texts.push_back(fmt::format("{}{}{}:{}", is_ipv6 ? "[" : "", host, is_ipv6 ? "]" : "", port));
  return texts;
}

std::string clock_text(const HostAnswer& answer) {
  const bool is_far = std::abs(answer.clock_skew) > answer.clock_error + kMuchSkew;
  return is_far ? fmt::format("; warning: its clock is {:.1f} s {}", std::abs(answer.clock_skew),
                              answer.clock_skew > 0 ? "ahead" : "behind")
                : "";
}

// A line per host; the problem of a single one says it all.
struct HostReport {
  std::string host, line, problem;  // problem is empty if the host is fine
};
void report(const std::vector<HostReport>& hosts) {
  const auto is_bad = [](const HostReport& host) { return !host.problem.empty(); };
  const auto bad = std::ranges::count_if(hosts, is_bad);
  for (const HostReport& host : hosts) {
    if (bad == 1 && is_bad(host)) continue;
    log_line(fmt::format("{}: {}", host.host, is_bad(host) ? host.problem : host.line));
  }
  if (bad == 0) return;
  const HostReport& first = *std::ranges::find_if(hosts, is_bad);
  if (bad == 1) fail(ErrorKind::unavailable, "{}: {}", first.host, first.problem);
  fail(ErrorKind::unavailable, "{} of {} hosts cannot be used, for example {}", bad, hosts.size(), first.host);
}

void report(const std::vector<RemoteHost>& asked, const std::vector<HostAnswer>& answers) {
  std::vector<HostReport> hosts;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    hosts.push_back(
        {.host = asked[i].name,
         .line = fmt::format("reached, {} cores, same build{}", answers[i].facts.core_limit, clock_text(answers[i])),
         .problem = answers[i].problem});
  }
  report(hosts);
}

// Where the program is on each host, once it is there.
std::vector<std::string> programs_on(const std::vector<HostTasks>& tasks, const HostOptions& options) {
  if (!options.ship) {
    const std::string usual = options.exec.empty() ? this_binary() : "trireme";
    return std::vector(tasks.size(), options.remote_program.empty() ? usual : options.remote_program);
  }
  const Shipment shipment = pack_this_program();
  const std::string size = format_bytes(static_cast<double>(shipment.archive.size()));
  log_line(fmt::format("copying trireme and {} libraries ({}) to the hosts that do not have them", shipment.libraries,
                       size));
  std::vector<std::string> names, programs;
  for (const HostTasks& host : tasks) names.push_back(host.host);
  const auto results = ship(shipment, names, reach_of(options), options.ship_folder);
  std::vector<HostReport> hosts;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const ShipResult& result = results[i];
    hosts.push_back({.host = names[i],
                     .line = result.was_there
                                 ? fmt::format("has {}", result.program)
                                 : fmt::format("copied {} in {:.1f} s, {}", size, result.seconds, result.program),
                     .problem = result.problem});
    programs.push_back(result.program);
  }
  report(hosts);
  return programs;
}

perf::CoreDivision divide(const HostTasks& tasks, const HostFacts& facts, perf::CoreDemand demand) {
  demand.workers = tasks.size.workers;
  demand.servers = tasks.size.servers;
  if (demand.servers == 0) demand.cores_per_server.reset();  // only for hosts with servers
  try {
    return perf::divide_cores(facts.cores, facts.core_limit, demand);
  } catch (const Error& error) {
    fail(error.kind(), "{}: {}", tasks.host, error.what());
  }
}

// Where the tasks of each host are found: all have been given an address by the user, or none has.
std::vector<std::string> addresses_of(const std::vector<HostTasks>& tasks, const std::vector<HostAnswer>& answers,
                                      const std::string& network) {
  std::vector<KnownHost> hosts;
  for (std::size_t i = 0; i < tasks.size(); ++i) hosts.push_back({.name = tasks[i].host, .facts = answers[i].facts});
  if (tasks.front().address.empty()) return choose_addresses(hosts, network);
  std::vector<std::string> given;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    check_has_address(hosts[i], tasks[i].address);
    given.push_back(tasks[i].address);
  }
  return given;
}

void check_loopback(const std::vector<HostTasks>& tasks, const std::vector<std::string>& found_at) {
  if (tasks.size() < 2) return;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    if (found_at[i].starts_with("127.") || found_at[i] == "::1") {
      bad_input("{} would be at {}, which the other hosts cannot reach; give --network", tasks[i].host, found_at[i]);
    }
  }
}

PortsWanted ports_wanted(const comm::JobSize& tasks, const TaskDemand& demand, bool at_addresses) {
  if (!at_addresses) return {.tasks = {.workers = 0, .servers = 0}};
  return {.tasks = tasks,
          .first_worker = demand.worker_port,
          .first_server = tasks.servers > 0 ? demand.ps_port : std::nullopt};
}

comm::ClusterSpec addresses(const std::string& host, const TaskPorts& ports) {
  return {.workers = addresses(host, ports.workers), .servers = addresses(host, ports.servers)};
}

}  // namespace

HostShare share_of_this_machine(const TaskDemand& demand, bool at_addresses, PortClaims& ports) {
  HostShare share{.host = comm::host_name(),
                  .program = this_binary(),
                  .cores = perf::divide_this_machine(demand.cores),
                  .addresses = {}};
  if (!at_addresses) return share;
  const comm::JobSize tasks{.workers = demand.cores.workers, .servers = demand.cores.servers};
  share.addresses = addresses("127.0.0.1", claim_ports(ports_wanted(tasks, demand, true), ports));
  return share;
}

HostReach reach_of(const HostOptions& options) {
  const HostReach reach = options.slurm ? srun_reach() : ssh_reach(options.ssh);
  return options.exec.empty() ? reach : inside(reach, options.exec);
}

std::vector<HostSlots> read_hosts(const HostOptions& options) {
  if (options.slurm) return read_slurm_allocation().nodes;
  const bool has_files = !options.public_addresses.empty() || !options.private_addresses.empty();
  if (int{!options.hosts.empty()} + int{!options.hostfile.empty()} + int{has_files} > 1) {
    bad_input("--hosts, --hostfile and --public-ips with --private-ips all name the hosts; give only one of them");
  }
  if (has_files) {
    if (options.public_addresses.empty() || options.private_addresses.empty()) {
      bad_input(
          "--public-ips and --private-ips belong together: give both where ssh reaches the hosts and where their tasks "
          "talk");
    }
    if (!options.network.empty()) bad_input("--network has no effect: --private-ips says where the tasks talk");
    return read_address_files(options.public_addresses, options.private_addresses);
  }
  return options.hosts.empty() ? read_host_file(options.hostfile) : parse_hosts(options.hosts, "--hosts");
}

std::vector<HostShare> shares_of_hosts(const HostOptions& options, const std::vector<HostSlots>& hosts,
                                       const TaskDemand& demand, bool at_addresses) {
  const auto tasks = spread_tasks(hosts, {.workers = demand.cores.workers, .servers = demand.cores.servers});
  const std::vector<std::string> programs = programs_on(tasks, options);
  std::vector<RemoteHost> asked;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    asked.push_back(
        {.name = tasks[i].host, .program = programs[i], .ports = ports_wanted(tasks[i].size, demand, at_addresses)});
  }
  const auto answers = ask_hosts(asked, reach_of(options));
  report(asked, answers);
  const std::vector<std::string> found_at = addresses_of(tasks, answers, options.network);
  check_loopback(tasks, found_at);
  std::vector<HostShare> shares;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const HostFacts& facts = answers[i].facts;
    shares.push_back({.host = tasks[i].host,
                      .program = programs[i],
                      .cores = divide(tasks[i], facts, demand.cores),
                      .addresses = addresses(found_at[i], expected_ports(asked[i].ports)),
                      .ports = asked[i].ports,
                      .network = network_of(found_at[i], facts)});
  }
  return shares;
}

std::string this_binary() { return std::filesystem::read_symlink("/proc/self/exe").string(); }

}  // namespace trireme::cluster
