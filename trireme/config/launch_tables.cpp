#include "trireme/config/tables.hpp"

namespace trireme::config {
namespace {

using cluster::ClusterOptions;
using cluster::HostOptions;
using cluster::LaunchOptions;
using cluster::SshOptions;
using cluster::SubmitOptions;

constexpr Range kTaskCount{.low = 1, .high = 1e5};
constexpr Range kCoreCount{.low = 0, .high = 4096};
constexpr Range kPort{.low = 1, .high = 65535};

template <auto... members>
Option hosts(const char* name, std::string help, Option facts = {}) {
  facts.group = kHostGroup;
  return entry<&LaunchOptions::hosts, members...>(name, std::move(help), std::move(facts));
}
template <auto member>
Option ssh(const char* name, std::string help, Option facts = {}) {
  facts.role = Role::measurement;
  return hosts<&HostOptions::ssh, member>(name, std::move(help), std::move(facts));
}
template <auto member>
Option submit(const char* name, std::string help, Option facts = {}) {
  facts.group = kSubmitGroup;
  facts.role = Role::run;
  return entry<&LaunchOptions::submit, member>(name, std::move(help), std::move(facts));
}
template <auto member>
Option joining(const char* name, std::string help, Option facts = {}) {
  facts.group = "Cluster";
  return entry<member>(name, std::move(help), std::move(facts));
}

}  // namespace

const Table<LaunchOptions>& launch_table() {
  static const Table<LaunchOptions> table(
      {entry<&LaunchOptions::workers>(
           "workers",
           "Number of workers (default on other hosts: as many as their list or Slurm says, otherwise one on each)",
           {.range = kTaskCount, .label = "{} worker|{} workers", .identity = 6, .alone = 1}),
       entry<&LaunchOptions::ps>("ps", "Number of parameter servers",
                                 {.range = Range{0, 1e5},
                                  .label = "{} server|{} servers",
                                  .title = "parameter servers",
                                  .identity = 7,
                                  .alone = 0}),
       entry<&LaunchOptions::threads_per_worker>(
           "threads-per-worker", "Cores for each worker; 0: all usable ones, divided evenly", {.range = kCoreCount}),
       entry<&LaunchOptions::threads_per_ps>(
           "threads-per-ps",
           "Cores reserved for each parameter server, taken before the workers'; 0: share the workers' (default: 1 "
           "if there are at least 8 cores per server, otherwise 0)",
           {.range = kCoreCount}),
       entry<&LaunchOptions::oversubscribe>("oversubscribe", "Allow more tasks than the cores can hold"),
       entry<&LaunchOptions::worker_port>(
           "worker-port",
           "Port of the first worker if workers connect over gRPC; the others use the next ports (default: the "
           "first free ports from 2220)",
           {.role = Role::measurement, .range = kPort}),
       entry<&LaunchOptions::ps_port>("ps-port", "The same for parameter servers (default: from 2230)",
                                      {.role = Role::measurement, .range = kPort}),
       hosts<&HostOptions::hosts>(
           "hosts",
           "Run on these hosts over ssh, with the given number of workers each: a:2,b:2; or divided evenly: a,b"),
       hosts<&HostOptions::hostfile>("hostfile", "Read the hosts from a file, one per line: a, a:2 or a slots=2"),
       hosts<&HostOptions::public_addresses>("public-ips",
                                             "Read the hosts from a file, one address per line: where ssh reaches "
                                             "them; goes with --private-ips"),
       hosts<&HostOptions::private_addresses>(
           "private-ips", "File with their addresses for the tasks of other hosts, in the same order"),
       ssh<&SshOptions::key>("ssh-key", "Private key for ssh (default: ssh's own choice)"),
       ssh<&SshOptions::user>("ssh-user", "User on the hosts"),
       ssh<&SshOptions::port>("ssh-port", "Port of the hosts' sshd", {.range = kPort}),
       ssh<&SshOptions::config>("ssh-config", "Configuration file for ssh"),
       hosts<&HostOptions::network>(
           "network",
           "Network that connects the tasks: an interface such as eth0, or a range such as 10.0.0.0/8 (default: the "
           "one that ssh uses; if that is not a single network, the first that all hosts share)"),
       hosts<&HostOptions::ship>("ship", "Copy this trireme and its libraries to hosts that do not have them yet",
                                 {.role = Role::measurement}),
       hosts<&HostOptions::ship_folder>("ship-dir", "Folder on the hosts for --ship (default: ~/.cache/trireme/ship)",
                                        {.role = Role::measurement}),
       hosts<&HostOptions::exec>(
           "exec",
           "Run trireme on the hosts in a container: the words to put before its command there, such as "
           "\"apptainer exec image.sif\" or \"podman run --rm -i --network host image\""),
       hosts<&HostOptions::remote_program>(
           "remote-program",
           "Path of trireme on the hosts (default: the same as here; with --exec, as found in the container)"),
       entry<&LaunchOptions::hosts, &HostOptions::slurm>(
           "slurm",
           "Run on the nodes of the current Slurm allocation (salloc, sbatch), with one worker per node or, if "
           "tasks were requested, one per task",
           {.group = "Slurm"}),
       entry<&LaunchOptions::hosts, &HostOptions::mpi_plugin>(
           "mpi", "How Slurm connects tasks that use MPI: pmix (Open MPI) or pmi2 (MPICH)",
           {.group = "Slurm", .names = {"pmix", "pmi2"}}),
       submit<&SubmitOptions::submit>("submit", "Submit a batch job that runs this launch instead of running it now"),
       submit<&SubmitOptions::nodes>("nodes", "Number of nodes to request", {.range = kTaskCount}),
       submit<&SubmitOptions::time>("time", "Time limit to request, in sbatch's format: minutes, 10:00, 1-12:00:00"),
       submit<&SubmitOptions::partition>("partition", "Partition to run in"),
       submit<&SubmitOptions::account>("account", "Account to charge"),
       submit<&SubmitOptions::constraint>("constraint", "Features that the nodes must have"),
       submit<&SubmitOptions::job_name>("job-name", "Name of the job"),
       submit<&SubmitOptions::tasks_per_node>("ntasks-per-node", "Workers on each node", {.range = Range{1, 4096}}),
       submit<&SubmitOptions::cpus_per_task>("cpus-per-task",
                                             "Processors per worker (default: whole nodes for this job alone)",
                                             {.range = Range{1, 4096}}),
       submit<&SubmitOptions::more>("sbatch",
                                    "Another option of sbatch, such as --sbatch=--gres=gpu:1; may be repeated"),
       entry<&LaunchOptions::output_folder>(
           "output-dir",
           "Folder for the full output of each task, in addition to what is shown: rank-R.out and rank-R.err; with "
           "servers worker-I.out, ps-I.out, ...",
           {.role = Role::run}),
       entry<&LaunchOptions::starter>(
           "starter",
           "What starts the tasks: mpi (mpirun, for tasks that use MPI), process (each on its own), or auto (what "
           "the command needs)",
           {.names = {"auto", "mpi", "process"}}),
       entry<&LaunchOptions::program>("program", "Run this program instead of trireme, with the arguments after --",
                                      {.role = Role::run}),
       entry<&LaunchOptions::keep_going>(
           "keep-going", "With --program: losing a worker does not end the job while others run", {.role = Role::run}),
       entry<&LaunchOptions::dry_run>("dry-run", "Show what would be started, and where, without starting it",
                                      {.role = Role::run})});
  return table;
}

const Table<ClusterOptions>& cluster_table() {
  static const Table<ClusterOptions> table(
      {joining<&ClusterOptions::worker_hosts>(
           "worker-hosts",
           "Addresses of the workers, host:port,...; the position is the task index. Only for tasks that you start "
           "by hand, without `trireme launch`",
           {.role = Role::run}),
       joining<&ClusterOptions::ps_hosts>("ps-hosts", "Addresses of the parameter servers, likewise",
                                          {.role = Role::run}),
       joining<&ClusterOptions::cluster_file>(
           "cluster", "The same from a JSON file: {\"worker\": [...], \"ps\": [...]}, or as TF_CONFIG has it",
           {.role = Role::run}),
       joining<&ClusterOptions::job_name>("job-name", "Role of this process: worker or ps", {.role = Role::run}),
       joining<&ClusterOptions::task_index>("task-index", "Index of this task in its list, from 0",
                                            {.role = Role::run, .range = Range{0, 1e6}}),
       joining<&ClusterOptions::protocol>(
           "protocol",
           "How tasks communicate: grpc, grpc+ucx (tensors over UCX), grpc+mpi (tensors over MPI), mpi, or auto: grpc "
           "between the tasks of a cluster, mpi otherwise",
           {.names = {"auto", "mpi", "grpc", "grpc+ucx", "grpc+mpi"}, .label = "{}"}),
       joining<&ClusterOptions::secret_file>(
           "secret-file", "File with the secret that all tasks of the job share; others must not be able to read it",
           {.role = Role::run}),
       joining<&ClusterOptions::tls_cert>("tls-cert", "Encrypt the connections: this task's certificate (PEM)"),
       joining<&ClusterOptions::tls_key>("tls-key", "Its private key (PEM)"),
       joining<&ClusterOptions::tls_ca>("tls-ca",
                                        "Certificate of the authority that signed all tasks' certificates (PEM)"),
       joining<&ClusterOptions::join_timeout>("join-timeout", "Seconds to wait for the other tasks at the start",
                                              {.role = Role::measurement, .range = kSeconds})});
  return table;
}

}  // namespace trireme::config
