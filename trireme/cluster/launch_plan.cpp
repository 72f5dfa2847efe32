#include "trireme/cluster/launch_plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <set>

#include "trireme/base/error.hpp"
#include "trireme/base/json.hpp"
#include "trireme/base/shell_text.hpp"
#include "trireme/cluster/child_process.hpp"
#include "trireme/cluster/environment.hpp"
#include "trireme/cluster/mpirun.hpp"
#include "trireme/cluster/secret.hpp"
#include "trireme/cluster/slurm.hpp"
#include "trireme/cluster/starter.hpp"
#include "trireme/comm/cluster_spec.hpp"
#include "trireme/comm/world.hpp"
#include "trireme/config/tables.hpp"

namespace trireme::cluster {
namespace {

using Environment = std::map<std::string, std::string>;

LaunchNeeds check_program(const LaunchOptions& options) {
  if (!options.hosts.are_given() && find_program(options.program).empty()) {
    bad_input("--program {}: there is no such program, or it cannot be run", options.program);
  }
  return {.survives_lost_workers = options.keep_going};
}

void check_given_hosts(const HostOptions& options) {
  if (options.slurm && options.are_named()) {
    bad_input("--slurm takes the hosts from Slurm; omit --hosts, --hostfile, --public-ips and --private-ips");
  }
  if (options.ship && !options.remote_program.empty()) {
    bad_input("--ship copies the program, but --remote-program says where it already is; use only one of them");
  }
  if (options.ship && !options.exec.empty()) {
    bad_input("--ship cannot be used with --exec: a container has its own trireme, or its host's at --remote-program");
  }
  if (!options.ship && !options.ship_folder.empty()) bad_input("--ship-dir has no effect without --ship");
}

void check_host_options(const LaunchOptions& options) {
  const HostOptions& hosts = options.hosts;
  for (const config::Option* each : config::launch_table().changed(options, config::kHostGroup)) {
    const bool is_of_ssh = each->name.starts_with("ssh-");
    if (is_of_ssh ? hosts.are_named() : hosts.are_given()) continue;
    bad_input("--{} has no effect without --hosts, --hostfile{}", each->name,
              is_of_ssh ? " or --public-ips" : ", --public-ips or --slurm");
  }
  if (hosts.are_given()) check_given_hosts(hosts);
}

TaskDemand demand_of(const LaunchOptions& options) {
  return {.cores = {.workers = static_cast<int>(options.workers.value()),
                    .servers = static_cast<int>(options.ps),
                    .cores_per_worker = static_cast<int>(options.threads_per_worker),
                    .cores_per_server = options.threads_per_ps,
                    .oversubscribe = options.oversubscribe},
          .worker_port = options.worker_port,
          .ps_port = options.ps_port};
}

std::int64_t number_of_workers(const LaunchOptions& options, const std::vector<HostSlots>& hosts) {
  if (options.workers) return *options.workers;
  if (options.hosts.are_given()) return usual_workers(hosts);
  bad_input("the number of workers is missing; give it, as in: trireme launch --workers 2 -- bench --model resnet50");
}

// Whether tasks meet at addresses: gRPC needs that, MPI does not.
bool meets_at_addresses(const LaunchOptions& options, const LaunchNeeds& needs) {
  if (options.ps > 0 && needs.protocol == "mpi") {
    bad_input("--protocol mpi does not support parameter servers; use grpc+mpi for tensors over MPI");
  }
  const bool meets = (options.hosts.are_given() && needs.protocol != "mpi") || options.ps > 0 ||
                     needs.protocol.starts_with("grpc") || needs.uses_every_protocol;
  if (!meets && options.worker_port) {
    bad_input("--worker-port has no effect: workers that use MPI have no ports");
  }
  if (options.ps == 0 && options.ps_port) bad_input("--ps-port has no effect without --ps");
  return meets;
}

void check_has_mpi(const LaunchOptions& options) {
  if (!options.program.empty() || comm::has_transport("MPI")) return;
  fail(ErrorKind::unavailable,
       "this build has no MPI, so workers cannot talk to each other: install libopenmpi-dev and build again, or use "
       "--starter process for workers that do not talk");
}

void check_suits_starter(const LaunchOptions& options, const LaunchNeeds& needs) {
  const bool has_choice = needs.protocol == "mpi" && !options.hosts.are_given();  // workers that do not talk
  if (options.starter == "process" && needs.talks_mpi() && !has_choice) {
    bad_input("--starter process: tasks with --protocol {} must be started by mpirun; omit --starter", needs.protocol);
  }
}

Starter starter_for_this_machine(const LaunchOptions& options, const LaunchNeeds& needs, bool at_addresses) {
  const bool wants_mpi =
      !at_addresses || needs.talks_mpi() || (needs.uses_every_protocol && comm::has_transport("MPI"));
  const bool by_mpi = options.starter == "mpi" || (options.starter == "auto" && wants_mpi);
  if (!by_mpi) return process_starter(this_binary());
  check_has_mpi(options);
  return mpi_starter(this_binary());
}

// The networks ranks talk over.
std::vector<std::string> networks_of(const std::vector<HostShare>& shares) {
  std::set<std::string> networks;
  for (const HostShare& share : shares) networks.insert(share.network);
  if (networks.contains("")) return {};
  return {networks.begin(), networks.end()};
}

// An MPI launcher starts the same command everywhere, by its own ways.
RunnerStarter mpi_runners(const LaunchOptions& options, const std::vector<HostShare>& shares) {
  check_has_mpi(options);
  if (!options.hosts.exec.empty()) {
    bad_input("--exec: tasks that use MPI are not started in containers; use --protocol grpc or grpc+ucx");
  }
  for (const HostShare& share : shares) {
    if (!options.hosts.slurm && share.host.find(':') != std::string::npos) {
      bad_input("{}: mpirun does not accept an IPv6 address for a host; tasks that use MPI need its name", share.host);
    }
    if (share.program != shares.front().program) {
      bad_input("tasks that use MPI need trireme at the same path on all hosts, but it is {} on {} and {} on {}",
                share.program, share.host, shares.front().program, shares.front().host);
    }
  }
  return options.hosts.slurm ? srun_runners(options.hosts.mpi_plugin, networks_of(shares))
                             : mpirun_runners(options.hosts.ssh, networks_of(shares));
}

Starter starter_for_hosts(const LaunchOptions& options, const LaunchNeeds& needs,
                          const std::vector<HostShare>& shares) {
  std::vector<RemoteHost> hosts;
  for (const HostShare& share : shares) {
    hosts.push_back({.name = share.host, .program = share.program, .ports = share.ports});
  }
  const bool by_mpi = options.starter == "mpi" || (options.starter == "auto" && needs.talks_mpi());
  return host_starter(this_binary(), reach_of(options.hosts), hosts,
                      by_mpi ? mpi_runners(options, shares) : RunnerStarter{});
}

// Tasks that share cores must not pin threads, and must yield while waiting.
Environment sharing_environment(int threads) {
  return {{"TRIREME_BIND", "off"},
          {"TRIREME_NUM_INTRA_THREADS", std::to_string(threads)},
          {"OMP_NUM_THREADS", std::to_string(threads)},
          {"OMPI_MCA_mpi_yield_when_idle", "1"},
          {"OMP_WAIT_POLICY", "passive"}};
}

std::string program_on(const HostShare& host, const LaunchOptions& options) {
  if (options.program.empty()) return host.program;
  return options.hosts.are_given() ? options.program : find_program(options.program);
}

// Of one role, host by host. The model has what they have in common.
void add_tasks(const Task& model, const std::vector<HostShare>& hosts, const LaunchOptions& options,
               JobDescription& job) {
  const bool are_workers = model.role == kWorkerRole;
  const std::int64_t count = are_workers ? options.workers.value() : options.ps;
  int index = 0;
  for (const HostShare& host : hosts) {
    const auto& processors = are_workers ? host.cores.workers : host.cores.servers;
    const std::vector<std::string>& addresses = are_workers ? host.addresses.workers : host.addresses.servers;
    for (std::size_t i = 0; i < processors.size(); ++i) {
      Task task = model;
      task.index = index++;
      task.host = host.host;
      task.processors = processors[i];
      if (!addresses.empty()) task.address = addresses[i];
      task.command = {program_on(host, options)};
      task.command.insert(task.command.end(), options.command.begin(), options.command.end());
      if (host.cores.shared) task.environment.merge(sharing_environment(host.cores.cores_per_worker));
      task.environment[kTaskRoleVariable] = task.role;
      task.environment[kTaskIndexVariable] = std::to_string(task.index);
      task.environment[kTaskCountVariable] = std::to_string(count);
      job.tasks.push_back(std::move(task));
    }
  }
}

// Workers first, then servers: task i is rank i.
JobDescription make_job(const LaunchOptions& options, const std::vector<HostShare>& hosts, bool at_addresses) {
  Task task;
  if (at_addresses) task.environment[kJobSecretVariable] = make_secret();
  if (options.hosts.slurm) task.environment[kEndRequestsVariable] = kFromLauncher;
  JobDescription job;
  add_tasks(task, hosts, options, job);
  if (isatty(STDERR_FILENO) != 0) job.tasks.front().environment[kProgressVariable] = "terminal";
  task.role = kServerRole;
  task.environment["CUDA_VISIBLE_DEVICES"] = "";  // GPUs are for workers
  add_tasks(task, hosts, options, job);
  return job;
}

std::string shell_text(const Environment& environment, const std::vector<std::string>& command) {
  std::vector<std::string> words;
  for (const auto& [name, value] : environment) {
    words.push_back(name + "=" + (name == kJobSecretVariable ? "..." : shell_quoted(value)));
  }
  for (const std::string& word : command) words.push_back(shell_quoted(word));
  return fmt::format("{}", fmt::join(words, " "));
}

std::string division_text(const perf::CoreDivision& cores) {
  std::string text;
  if (cores.shared) {
    text += fmt::format("; they share the cores, {} thread(s) each", cores.cores_per_worker);
  } else if (!cores.servers.empty()) {
    text += cores.cores_per_server > 0 ? fmt::format("; {} core(s) for each ps alone", cores.cores_per_server)
                                       : std::string("; ps share the workers' cores");
  }
  if (cores.idle_cores > 0) text += fmt::format("; {} core(s) idle", cores.idle_cores);
  return text;
}

}  // namespace

void check_places(const LaunchOptions& options, int nodes, int places) {
  const std::int64_t workers = options.workers.value_or(places);
  if (workers > places) {
    bad_input(
        "--workers {}: {} Slurm node{} hold{} {} worker{}; request more nodes, or more tasks per node "
        "(--ntasks-per-node)",
        workers, nodes, nodes == 1 ? "" : "s", nodes == 1 ? "s" : "", places, places == 1 ? "" : "s");
  }
  if (options.ps > workers) {
    bad_input("--ps {}: servers run beside workers, so there can be at most as many as workers ({})", options.ps,
              workers);
  }
}

LaunchNeeds check_launch(const LaunchOptions& options, const CommandCheck& check_command) {
  config::launch_table().check(options);
  check_host_options(options);
  if (const std::string launcher = surrounding_launcher(); !launcher.empty()) {
    bad_input("this process was itself started by {} as one of several; run the command without launch", launcher);
  }
  if (!options.program.empty()) return check_program(options);
  if (options.keep_going) {
    bad_input("--keep-going only applies to --program: trireme's own commands know whether they can continue");
  }
  if (options.command.empty()) {
    bad_input(
        "nothing to launch; give the command after --, as in: trireme launch --workers 2 -- bench --model resnet50");
  }
  if (options.command.front() == "launch") bad_input("a launch cannot be launched; give the command itself after --");
  return check_command(options.command,
                       {.workers = static_cast<int>(options.workers.value()), .servers = static_cast<int>(options.ps)});
}

LaunchPlan plan_launch(LaunchOptions options, const CommandCheck& check_command) {
  const auto hosts = options.hosts.are_given() ? read_hosts(options.hosts) : std::vector<HostSlots>{};
  if (options.hosts.slurm) check_places(options, static_cast<int>(hosts.size()), usual_workers(hosts));
  options.workers = number_of_workers(options, hosts);
  const LaunchNeeds needs = check_launch(options, check_command);
  const bool at_addresses = meets_at_addresses(options, needs);
  check_suits_starter(options, needs);
  const TaskDemand tasks = demand_of(options);
  LaunchPlan plan;
  if (needs.record_file != "-") plan.record_file = needs.record_file;
  if (!plan.record_file.empty()) check_writable(plan.record_file);
  if (options.hosts.are_given()) {
    plan.hosts = shares_of_hosts(options.hosts, hosts, tasks, at_addresses);
    plan.starter = starter_for_hosts(options, needs, plan.hosts);
  } else {
    plan.hosts = {share_of_this_machine(tasks, at_addresses, plan.ports)};
    plan.starter = starter_for_this_machine(options, needs, at_addresses);
  }
  plan.job = make_job(options, plan.hosts, at_addresses);
  plan.job.survives_lost_workers = needs.survives_lost_workers;
  plan.job.least_workers = needs.least_workers;
  plan.job.needs_first_worker = needs.needs_first_worker;
  for (Task& task : plan.job.tasks) {
    if (!plan.record_file.empty()) task.environment[kRecordVariable] = kFromLauncher;
  }
  return plan;
}

std::string placement_text(const LaunchPlan& plan) {
  std::string text;
  std::size_t workers = 0, servers = 0;
  for (const HostShare& host : plan.hosts) {
    text += fmt::format("trireme: {}{}\n", describe(plan.job, host.host), division_text(host.cores));
    workers += host.cores.workers.size();
    servers += host.cores.servers.size();
  }
  if (servers > workers) {
    text += fmt::format("trireme: warning: {} servers for {} worker{}: more servers than workers rarely help\n",
                        servers, workers, workers == 1 ? "" : "s");
  }
  return text;
}

std::string commands_text(const LaunchPlan& plan) {
  std::string text = "to be started:\n";
  for (const auto& start : plan.starter(plan.job, "PRIVATE_FOLDER")) {
    text += fmt::format("  {}\n", shell_text(start.environment, start.command));
  }
  text += "which runs:\n";
  JobDescription job = plan.job;
  tell_addresses(job);
  for (std::size_t i = 0; i < job.tasks.size(); ++i) {
    const Task& task = job.tasks[i];
    text += fmt::format("  {}{}\n", job.prefix(static_cast<int>(i)), shell_text(task.environment, task.command));
  }
  return text;
}

}  // namespace trireme::cluster
