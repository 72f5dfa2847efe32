#include "cli/launch_hosts.hpp"

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

namespace trireme::cli {
namespace {

constexpr double kMuchSkew = 1;  // seconds: beyond this, times in records of different hosts are not comparable

std::vector<std::string> addresses(const std::string& host, const std::vector<int>& ports) {
  const bool is_ipv6 = host.find(':') != std::string::npos;
  std::vector<std::string> texts;
  for (const int port : ports)
    texts.push_back(fmt::format("{}{}{}:{}", is_ipv6 ? "[" : "", host, is_ipv6 ? "]" : "", port));
  return texts;
}

std::string clock_text(const cluster::HostAnswer& answer) {
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
  fail(ErrorKind::unavailable, "{} of {} hosts cannot be used, {} for one", bad, hosts.size(), first.host);
}

void report(const std::vector<cluster::RemoteHost>& asked, const std::vector<cluster::HostAnswer>& answers) {
  std::vector<HostReport> hosts;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    hosts.push_back(
        {.host = asked[i].name,
         .line = fmt::format("reached, {} cores, same build{}", answers[i].facts.core_limit, clock_text(answers[i])),
         .problem = answers[i].problem});
  }
  report(hosts);
}

// The program's path on each host, after copying it if asked.
std::vector<std::string> programs_on(const std::vector<cluster::HostTasks>& tasks, const HostOptions& options) {
  if (!options.ship) {
    const std::string usual = options.exec.empty() ? this_binary() : "trireme";
    return std::vector(tasks.size(), options.remote_program.empty() ? usual : options.remote_program);
  }
  const cluster::Shipment shipment = cluster::pack_this_program();
  const std::string size = format_bytes(static_cast<double>(shipment.archive.size()));
  log_line(fmt::format("copying trireme and {} libraries, {}, to the hosts that do not have them", shipment.libraries,
                       size));
  std::vector<std::string> names, programs;
  for (const cluster::HostTasks& host : tasks) names.push_back(host.host);
  const auto results = cluster::ship(shipment, names, reach_of(options), options.ship_folder);
  std::vector<HostReport> hosts;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const cluster::ShipResult& result = results[i];
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

perf::CoreDivision divide(const cluster::HostTasks& tasks, const cluster::HostFacts& facts, perf::CoreDemand demand) {
  demand.workers = tasks.size.workers;
  demand.servers = tasks.size.servers;
  if (demand.servers == 0) demand.cores_per_server.reset();  // only for hosts with servers
  try {
    return perf::divide_cores(facts.cores, facts.core_limit, demand);
  } catch (const Error& error) {
    fail(error.kind(), "{}: {}", tasks.host, error.what());
  }
}

// Addresses of each host's tasks: the user gave all of them or none.
std::vector<std::string> addresses_of(const std::vector<cluster::HostTasks>& tasks,
                                      const std::vector<cluster::HostAnswer>& answers, const std::string& network) {
  std::vector<cluster::KnownHost> hosts;
  for (std::size_t i = 0; i < tasks.size(); ++i) hosts.push_back({.name = tasks[i].host, .facts = answers[i].facts});
  if (tasks.front().address.empty()) return cluster::choose_addresses(hosts, network);
  std::vector<std::string> given;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    cluster::check_has_address(hosts[i], tasks[i].address);
    given.push_back(tasks[i].address);
  }
  return given;
}

void check_loopback(const std::vector<cluster::HostTasks>& tasks, const std::vector<std::string>& found_at) {
  if (tasks.size() < 2) return;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    if (found_at[i].starts_with("127.") || found_at[i] == "::1") {
      bad_input("{} would be found at {}, which is no address for the other hosts; give --network", tasks[i].host,
                found_at[i]);
    }
  }
}

cluster::PortsWanted ports_wanted(const comm::JobSize& tasks, const TaskDemand& demand, bool at_addresses) {
  if (!at_addresses) return {.tasks = {.workers = 0, .servers = 0}};
  return {.tasks = tasks,
          .first_worker = demand.worker_port,
          .first_server = tasks.servers > 0 ? demand.ps_port : std::nullopt};
}

comm::ClusterSpec addresses(const std::string& host, const cluster::TaskPorts& ports) {
  return {.workers = addresses(host, ports.workers), .servers = addresses(host, ports.servers)};
}

}  // namespace

HostShare share_of_this_machine(const TaskDemand& demand, bool at_addresses, cluster::PortClaims& ports) {
  HostShare share{.host = comm::host_name(),
                  .program = this_binary(),
                  .cores = perf::divide_this_machine(demand.cores),
                  .addresses = {}};
  if (!at_addresses) return share;
  const comm::JobSize tasks{.workers = demand.cores.workers, .servers = demand.cores.servers};
  share.addresses = addresses("127.0.0.1", cluster::claim_ports(ports_wanted(tasks, demand, true), ports));
  return share;
}

cluster::HostReach reach_of(const HostOptions& options) {
  const cluster::HostReach reach = options.slurm ? cluster::srun_reach() : cluster::ssh_reach(options.ssh);
  return options.exec.empty() ? reach : cluster::inside(reach, options.exec);
}

std::vector<cluster::HostSlots> read_hosts(const HostOptions& options) {
  if (options.slurm) return options.allocated;
  const bool has_files = !options.public_addresses.empty() || !options.private_addresses.empty();
  if (int{!options.hosts.empty()} + int{!options.hostfile.empty()} + int{has_files} > 1) {
    bad_input("--hosts, --hostfile and --public-ips with --private-ips all name the hosts; give one of them");
  }
  if (has_files) {
    if (options.public_addresses.empty() || options.private_addresses.empty()) {
      bad_input("--public-ips and --private-ips belong together: where ssh reaches the hosts, and where they talk");
    }
    if (!options.network.empty()) bad_input("--network has no effect: --private-ips says where the tasks talk");
    return cluster::read_address_files(options.public_addresses, options.private_addresses);
  }
  return options.hosts.empty() ? cluster::read_host_file(options.hostfile)
                               : cluster::parse_hosts(options.hosts, "--hosts");
}

std::vector<HostShare> shares_of_hosts(const HostOptions& options, const std::vector<cluster::HostSlots>& hosts,
                                       const TaskDemand& demand, bool at_addresses) {
  const auto tasks = cluster::spread_tasks(hosts, {.workers = demand.cores.workers, .servers = demand.cores.servers});
  const std::vector<std::string> programs = programs_on(tasks, options);
  std::vector<cluster::RemoteHost> asked;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    asked.push_back(
        {.name = tasks[i].host, .program = programs[i], .ports = ports_wanted(tasks[i].size, demand, at_addresses)});
  }
  const auto answers = cluster::ask_hosts(asked, reach_of(options));
  report(asked, answers);
  const std::vector<std::string> found_at = addresses_of(tasks, answers, options.network);
  check_loopback(tasks, found_at);
  std::vector<HostShare> shares;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const cluster::HostFacts& facts = answers[i].facts;
    shares.push_back({.host = tasks[i].host,
                      .program = programs[i],
                      .cores = divide(tasks[i], facts, demand.cores),
                      .addresses = addresses(found_at[i], cluster::expected_ports(asked[i].ports)),
                      .ports = asked[i].ports,
                      .network = cluster::network_of(found_at[i], facts)});
  }
  return shares;
}

std::string this_binary() { return std::filesystem::read_symlink("/proc/self/exe").string(); }

}  // namespace trireme::cli
