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

void check_host_options(const HostOptions& options) {
  if (options.mpi_plugin != "pmix" && options.mpi_plugin != "pmi2") {
    bad_input("--mpi {}: must be pmix or pmi2", options.mpi_plugin);
  }
  for (const auto& [option, is_given] :
       {std::pair("--ssh-key", !options.ssh.key.empty()), std::pair("--ssh-user", !options.ssh.user.empty()),
        std::pair("--ssh-port", options.ssh.port.has_value()),
        std::pair("--ssh-config", !options.ssh.config.empty())}) {
    if (is_given && !options.are_named()) {
      bad_input("{} has no effect without --hosts, --hostfile or --public-ips", option);
    }
  }
  if (options.are_given()) return check_given_hosts(options);
  for (const auto& [option, is_given] :
       {std::pair("--network", !options.network.empty()), std::pair("--ship", options.ship),
        std::pair("--ship-dir", !options.ship_folder.empty()), std::pair("--exec", !options.exec.empty()),
        std::pair("--remote-program", !options.remote_program.empty())}) {
    if (is_given) bad_input("{} has no effect without --hosts, --hostfile, --public-ips or --slurm", option);
  }
}

int number_of_workers(const LaunchOptions& options, const std::vector<HostSlots>& hosts) {
  if (options.workers) return *options.workers;
  if (options.hosts.are_given()) return usual_workers(hosts);
  bad_input("the number of workers is missing; give it, as in: trireme launch --workers 2 -- bench --model resnet50");
}

// Whether tasks meet at addresses: gRPC needs that, MPI does not.
bool meets_at_addresses(const LaunchOptions& options, const LaunchNeeds& needs) {
  if (options.tasks.cores.servers > 0 && needs.protocol == "mpi") {
    bad_input("--protocol mpi does not support parameter servers; use grpc+mpi for tensors over MPI");
  }
  const bool meets = (options.hosts.are_given() && needs.protocol != "mpi") || options.tasks.cores.servers > 0 ||
                     needs.protocol.starts_with("grpc") || needs.uses_every_protocol;
  if (!meets && options.tasks.worker_port) {
    bad_input("--worker-port has no effect: workers that use MPI have no ports");
  }
  if (options.tasks.cores.servers == 0 && options.tasks.ps_port) bad_input("--ps-port has no effect without --ps");
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
  const int count = are_workers ? options.tasks.cores.workers : options.tasks.cores.servers;
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

LaunchNeeds check_launch(const LaunchOptions& options, const CommandCheck& check_command) {
  check_host_options(options.hosts);
  if (const std::string launcher = surrounding_launcher(); !launcher.empty()) {
    bad_input("this process was itself started by {} as one of several; run the command without launch", launcher);
  }
  if (options.starter != "auto" && options.starter != "mpi" && options.starter != "process") {
    bad_input("--starter {}: must be one of auto, mpi, process", options.starter);
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
                       {.workers = options.tasks.cores.workers, .servers = options.tasks.cores.servers});
}

LaunchPlan plan_launch(LaunchOptions options, const CommandCheck& check_command) {
  const auto hosts = options.hosts.are_given() ? read_hosts(options.hosts) : std::vector<HostSlots>{};
  options.tasks.cores.workers = number_of_workers(options, hosts);
  const LaunchNeeds needs = check_launch(options, check_command);
  const bool at_addresses = meets_at_addresses(options, needs);
  check_suits_starter(options, needs);
  LaunchPlan plan;
  if (needs.record_file != "-") plan.record_file = needs.record_file;
  if (!plan.record_file.empty()) check_writable(plan.record_file);
  if (options.hosts.are_given()) {
    plan.hosts = shares_of_hosts(options.hosts, hosts, options.tasks, at_addresses);
    plan.starter = starter_for_hosts(options, needs, plan.hosts);
  } else {
    plan.hosts = {share_of_this_machine(options.tasks, at_addresses, plan.ports)};
    plan.starter = starter_for_this_machine(options, needs, at_addresses);
  }
  plan.job = make_job(options, plan.hosts, at_addresses);
  plan.job.survives_lost_workers = needs.survives_lost_workers;
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
