#include "cli/launch_plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "trireme/base/error.hpp"
#include "trireme/cluster/child_process.hpp"
#include "trireme/cluster/environment.hpp"
#include "trireme/cluster/secret.hpp"
#include "trireme/comm/cluster_spec.hpp"
#include "trireme/comm/host.hpp"
#include "trireme/comm/world.hpp"

namespace trireme::cli {
namespace {

constexpr int kUsualWorkerPort = 2220, kUsualServerPort = 2230;

using Environment = std::map<std::string, std::string>;

LaunchNeeds check_program(const LaunchOptions& options) {
  if (cluster::find_program(options.program).empty()) {
    bad_input("--program {}: there is no such program, or it cannot be run", options.program);
  }
  return {.survives_lost_workers = options.keep_going};
}

LaunchNeeds check(const LaunchOptions& options, const CommandCheck& check_command) {
  if (const std::string launcher = cluster::surrounding_launcher(); !launcher.empty()) {
    bad_input("this process was itself started by {} as one of several; run the command without launch", launcher);
  }
  if (options.starter != "auto" && options.starter != "mpi" && options.starter != "process") {
    bad_input("--starter {}: must be one of auto, mpi, process", options.starter);
  }
  if (!options.program.empty()) return check_program(options);
  if (options.keep_going) {
    bad_input("--keep-going is for --program: the commands of trireme know themselves whether they can go on");
  }
  if (options.command.empty()) {
    bad_input(
        "nothing to launch; give the command after --, as in: trireme launch --workers 2 -- bench --model resnet50");
  }
  if (options.command.front() == "launch") bad_input("a launch cannot be launched; give the command itself after --");
  return check_command(options.command, {.workers = options.demand.workers, .servers = options.demand.servers});
}

// Whether the tasks meet at addresses, which gRPC needs; MPI does without.
bool meets_at_addresses(const LaunchOptions& options, const LaunchNeeds& needs) {
  if (options.demand.servers > 0 && needs.protocol == "mpi") {
    bad_input("--protocol mpi knows no parameter servers; take grpc+mpi for tensors over MPI");
  }
  const bool meets = options.demand.servers > 0 || needs.protocol.starts_with("grpc");
  if (!meets && options.worker_port) bad_input("--worker-port has no effect: workers that talk MPI have no ports");
  if (options.demand.servers == 0 && options.ps_port) bad_input("--ps-port has no effect without --ps");
  return meets;
}

cluster::Starter choose_starter(const LaunchOptions& options, const LaunchNeeds& needs, bool at_addresses) {
  const bool talks_mpi = !at_addresses || needs.protocol == "grpc+mpi";
  if (needs.protocol == "grpc+mpi" && options.starter == "process") {
    bad_input("--starter process: tasks with --protocol grpc+mpi have to be started by mpirun; leave it out");
  }
  const bool by_mpi = options.starter == "mpi" || (options.starter == "auto" && talks_mpi);
  if (!by_mpi) return cluster::process_starter(this_binary());
  const auto protocols = comm::protocol_names();
  const bool has_mpi = std::find(protocols.begin(), protocols.end(), "mpi") != protocols.end();
  if (options.program.empty() && !has_mpi) {
    fail(ErrorKind::unavailable,
         "this build has no MPI, so workers could not talk to each other: install libopenmpi-dev and build again, or "
         "start workers that do not talk with --starter process");
  }
  return cluster::mpi_starter(this_binary());
}

comm::ClusterSpec claim_addresses(const LaunchOptions& options, cluster::PortClaims& ports) {
  const cluster::PortRange workers{"--worker-port", options.worker_port, kUsualWorkerPort, options.demand.workers};
  const cluster::PortRange servers{"--ps-port", options.ps_port, kUsualServerPort, options.demand.servers};
  const auto addresses = [&ports](const cluster::PortRange& range) {
    std::vector<std::string> texts;
    for (const int port : ports.claim(range)) texts.push_back(fmt::format("127.0.0.1:{}", port));
    return texts;
  };
  comm::ClusterSpec spec;
  if (options.ps_port) spec.servers = addresses(servers);  // what is asked for comes before what gives way
  spec.workers = addresses(workers);
  if (!options.ps_port) spec.servers = addresses(servers);
  return spec;
}

// Tasks that share cores must not bind threads to them, and must give way when they wait.
Environment sharing_environment(int threads) {
  return {{"TRIREME_BIND", "off"},
          {"TRIREME_NUM_INTRA_THREADS", std::to_string(threads)},
          {"OMP_NUM_THREADS", std::to_string(threads)},
          {"OMP_WAIT_POLICY", "passive"}};
}

// Of all tasks.
Environment common_environment(const LaunchOptions& options, bool at_addresses, LaunchPlan& plan) {
  Environment environment;
  if (plan.cores.shared) environment = sharing_environment(plan.cores.cores_per_worker);
  if (at_addresses) {
    environment[cluster::kClusterVariable] = comm::to_json_text(claim_addresses(options, plan.ports));
    environment[cluster::kJobSecretVariable] = cluster::make_secret();
  }
  return environment;
}

void add_tasks(const cluster::Task& model, const std::vector<std::vector<int>>& processors, cluster::Job& job) {
  for (std::size_t i = 0; i < processors.size(); ++i) {
    cluster::Task task = model;
    task.index = static_cast<int>(i);
    task.processors = processors[i];
    task.environment[cluster::kTaskRoleVariable] = task.role;
    task.environment[cluster::kTaskIndexVariable] = std::to_string(i);
    task.environment[cluster::kTaskCountVariable] = std::to_string(processors.size());
    job.tasks.push_back(std::move(task));
  }
}

// Workers first, then servers: task i is rank i.
cluster::Job make_job(const LaunchOptions& options, const cluster::CoreDivision& cores,
                      const Environment& environment) {
  std::vector<std::string> command{options.program.empty() ? this_binary() : cluster::find_program(options.program)};
  command.insert(command.end(), options.command.begin(), options.command.end());
  cluster::Task task{.host = comm::host_name(), .command = command, .environment = environment};
  cluster::Job job;
  add_tasks(task, cores.workers, job);
  if (isatty(STDERR_FILENO) != 0) job.tasks.front().environment[cluster::kProgressVariable] = "terminal";
  task.role = cluster::kServerRole;
  task.environment["CUDA_VISIBLE_DEVICES"] = "";  // GPUs are for workers
  add_tasks(task, cores.servers, job);
  return job;
}

std::string quoted(const std::string& word) {
  constexpr const char* kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=./:,+@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string result = "'";
  for (const char c : word) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

std::string shell_text(const Environment& environment, const std::vector<std::string>& command) {
  std::vector<std::string> words;
  for (const auto& [name, value] : environment) {
    words.push_back(name + "=" + (name == cluster::kJobSecretVariable ? "..." : quoted(value)));
  }
  for (const std::string& word : command) words.push_back(quoted(word));
  return fmt::format("{}", fmt::join(words, " "));
}

}  // namespace

std::string this_binary() { return std::filesystem::read_symlink("/proc/self/exe").string(); }

LaunchPlan plan_launch(const LaunchOptions& options, const CommandCheck& check_command) {
  const LaunchNeeds needs = check(options, check_command);
  const bool at_addresses = meets_at_addresses(options, needs);
  LaunchPlan plan;
  plan.cores = cluster::divide_this_machine(options.demand);
  plan.starter = choose_starter(options, needs, at_addresses);
  plan.job = make_job(options, plan.cores, common_environment(options, at_addresses, plan));
  plan.job.survives_lost_workers = needs.survives_lost_workers;
  plan.job.needs_first_worker = needs.needs_first_worker;
  return plan;
}

std::string placement_text(const LaunchPlan& plan) {
  const cluster::CoreDivision& cores = plan.cores;
  std::string text = "trireme: " + cluster::describe(plan.job);
  text.pop_back();
  if (cores.shared) {
    text += fmt::format("; they share the cores, {} thread(s) each", cores.cores_per_worker);
  } else if (!cores.servers.empty()) {
    text += cores.cores_per_server > 0 ? fmt::format("; {} core(s) for each ps alone", cores.cores_per_server)
                                       : std::string("; ps share the workers' cores");
  }
  if (cores.idle_cores > 0) text += fmt::format("; {} core(s) idle", cores.idle_cores);
  text += "\n";
  if (cores.servers.size() > cores.workers.size()) {
    text += fmt::format("trireme: warning: {} servers for {} worker{}: more servers than workers seldom help\n",
                        cores.servers.size(), cores.workers.size(), cores.workers.size() == 1 ? "" : "s");
  }
  return text;
}

std::string commands_text(const LaunchPlan& plan) {
  std::string text = "to be started:\n";
  for (const auto& start : plan.starter(plan.job, "PRIVATE_FOLDER")) {
    text += fmt::format("  {}\n", shell_text(start.environment, start.command));
  }
  text += "which runs:\n";
  for (std::size_t i = 0; i < plan.job.tasks.size(); ++i) {
    const cluster::Task& task = plan.job.tasks[i];
    text += fmt::format("  {}{}\n", plan.job.prefix(static_cast<int>(i)), shell_text(task.environment, task.command));
  }
  return text;
}

}  // namespace trireme::cli
