#include "cli/cluster_options.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "cli/commands.hpp"
#include "trireme/base/error.hpp"
#include "trireme/cluster/environment.hpp"
#include "trireme/cluster/secret.hpp"
#include "trireme/comm/world.hpp"

namespace trireme::cli {
namespace {

void check_protocol(const std::string& protocol) {
  std::vector<std::string> known = comm::cluster_protocols();
  known.insert(known.begin(), {"auto", "mpi"});
  if (std::ranges::find(known, protocol) != known.end()) return;
  bad_input("--protocol {}: must be one of {}{}", protocol, fmt::join(known, ", "),
            protocol == "grpc+verbs" ? "; use grpc+ucx for RDMA" : "");
}

// The first option that gives task addresses by hand; empty: none.
std::string option_given_by_hand(const ClusterArguments& arguments) {
  if (!arguments.worker_hosts.empty()) return "--worker-hosts";
  if (!arguments.ps_hosts.empty()) return "--ps-hosts";
  if (!arguments.cluster_file.empty()) return "--cluster";
  if (!arguments.job_name.empty()) return "--job-name";
  if (arguments.task_index) return "--task-index";
  if (!arguments.secret_file.empty()) return "--secret-file";
  return "";
}

void check_not_by_hand(const ClusterArguments& arguments) {
  if (const std::string option = option_given_by_hand(arguments); !option.empty()) {
    bad_input("{}: `trireme launch` tells its tasks where they are; leave it out", option);
  }
}

comm::ClusterDescription description_by_hand(const ClusterArguments& arguments) {
  if (arguments.cluster_file.empty()) {
    return {.spec = comm::cluster_from_lists(arguments.worker_hosts, arguments.ps_hosts)};
  }
  if (!arguments.worker_hosts.empty() || !arguments.ps_hosts.empty()) {
    bad_input("--cluster and --{} both name the tasks; leave one of them out",
              arguments.worker_hosts.empty() ? "ps-hosts" : "worker-hosts");
  }
  return comm::read_cluster_file(arguments.cluster_file);
}

// From options, from the file, or from mpirun, which started one process per task in rank order.
comm::TaskPlace place_by_hand(const ClusterArguments& arguments, const comm::ClusterDescription& description) {
  const bool has_job = !arguments.job_name.empty(), has_index = arguments.task_index.has_value();
  if (has_job != has_index) {
    bad_input("--job-name and --task-index go together; {} is missing", has_job ? "--task-index" : "--job-name");
  }
  if (has_job) return {.job = arguments.job_name, .index = *arguments.task_index};
  if (description.task) return *description.task;
  const comm::LaunchPlace launched = comm::launch_place();
  if (launched.size == 1) {
    bad_input("which task of the cluster is this process? Give --job-name (worker or ps) and --task-index");
  }
  if (launched.size != description.spec.size()) {
    bad_input("{} started {} processes, but the cluster has {} tasks ({} workers, {} servers)", launched.launcher,
              launched.size, description.spec.size(), description.spec.workers.size(), description.spec.servers.size());
  }
  return description.spec.place_of(launched.rank);
}

// In an MPI world a task's rank must match its place.
void check_mpi_order(const comm::ClusterSpec& spec, const comm::TaskPlace& place) {
  const comm::LaunchPlace launched = comm::launch_place();
  if (launched.size == 1 && spec.size() > 1) {
    bad_input("--protocol grpc+mpi: one mpirun must start all {} tasks", spec.size());
  }
  if (launched.size != spec.size() || launched.rank != spec.rank_of(place)) {
    bad_input(
        "--protocol grpc+mpi: {} started this process as rank {} of {}, but {} of this cluster is rank {} of {}; start "
        "the workers first, then the servers, in the order of the lists",
        launched.launcher, launched.rank, launched.size, to_string(place), spec.rank_of(place), spec.size());
  }
}

comm::TlsFiles tls_files(const ClusterArguments& arguments) {
  const std::array<std::pair<const char*, std::string>, 3> files{
      {{"--tls-cert", arguments.tls_cert}, {"--tls-key", arguments.tls_key}, {"--tls-ca", arguments.tls_ca}}};
  const auto is_given = [](const auto& file) { return !file.second.empty(); };
  if (std::ranges::none_of(files, is_given)) return {};
  for (const auto& [option, path] : files) {
    if (path.empty()) bad_input("--tls-cert, --tls-key and --tls-ca go together; {} is missing", option);
    if (!std::filesystem::exists(path)) bad_input("{} {}: there is no such file", option, path);
  }
  return {.certificate = arguments.tls_cert, .key = arguments.tls_key, .authority = arguments.tls_ca};
}

std::string find_secret(const ClusterArguments& arguments) {
  const std::string told = cluster::environment_variable(cluster::kJobSecretVariable);
  if (!told.empty() && !arguments.secret_file.empty()) {
    bad_input("--secret-file and the variable {} both give the secret of the job; leave one of them out",
              cluster::kJobSecretVariable);
  }
  if (!arguments.secret_file.empty()) return cluster::read_secret_file(arguments.secret_file);
  if (told.empty()) {
    bad_input(
        "the tasks of a job need a secret to recognize each other; make one with (umask 077; head -c 32 /dev/urandom | "
        "base64 > job.secret) and give it to all tasks, with --secret-file job.secret");
  }
  cluster::check_secret(told, fmt::format("the variable {}", cluster::kJobSecretVariable));
  return told;
}

// Where the tasks are, if anything says so, and which one this is.
std::optional<comm::ClusterPlace> find_place(const ClusterArguments& arguments) {
  if (cluster::is_launched()) {
    check_not_by_hand(arguments);
    return cluster::place_in_launch();
  }
  const std::string option = option_given_by_hand(arguments);
  if (option.empty()) return std::nullopt;
  if (arguments.worker_hosts.empty() && arguments.ps_hosts.empty() && arguments.cluster_file.empty()) {
    bad_input("{} has no effect without --worker-hosts or --cluster", option);
  }
  const comm::ClusterDescription description = description_by_hand(arguments);
  comm::ClusterPlace place{.spec = description.spec, .place = place_by_hand(arguments, description)};
  check_place(place.spec, place.place, "--job-name", "--task-index");
  return place;
}

}  // namespace

void add_cluster_options(CLI::App& app, ClusterArguments& arguments) {
  const OptionGroup group(app, "Cluster");
  app.add_option("--worker-hosts", arguments.worker_hosts,
                 "Addresses of the workers, host:port,...; the position is the task index. Only for tasks that\n"
                 "you start by hand, without `trireme launch`");
  app.add_option("--ps-hosts", arguments.ps_hosts, "Addresses of the parameter servers, likewise");
  app.add_option("--cluster", arguments.cluster_file,
                 "The same from a JSON file: {\"worker\": [...], \"ps\": [...]}, or as TF_CONFIG has it");
  app.add_option("--job-name", arguments.job_name, "Role of this process: worker or ps");
  app.add_option("--task-index", arguments.task_index, "Index of this task in its list, from 0");
  app.add_option("--protocol", arguments.protocol,
                 "How tasks communicate: grpc, grpc+ucx (tensors over UCX), grpc+mpi (tensors over MPI), mpi, or\n"
                 "auto: grpc between the tasks of a cluster, mpi otherwise")
      ->capture_default_str();
  app.add_option("--secret-file", arguments.secret_file,
                 "File with the secret that all tasks of the job share; others must not be able to read it");
  app.add_option("--tls-cert", arguments.tls_cert, "Encrypt the connections: this task's certificate (PEM)");
  app.add_option("--tls-key", arguments.tls_key, "Its private key (PEM)");
  app.add_option("--tls-ca", arguments.tls_ca,
                 "Certificate of the authority that signed all tasks' certificates (PEM)");
  app.add_option("--join-timeout", arguments.join_timeout, "Seconds to wait for the other tasks at the start")
      ->capture_default_str();
}

std::optional<comm::ClusterPlace> resolve_cluster(const ClusterArguments& arguments) {
  check_protocol(arguments.protocol);
  if (!(arguments.join_timeout > 0 && arguments.join_timeout <= 1e6)) {
    bad_input("--join-timeout {}: must be a number of seconds above 0", arguments.join_timeout);
  }
  std::optional<comm::ClusterPlace> place = find_place(arguments);
  const comm::TlsFiles tls = tls_files(arguments);
  const bool wants_cluster = arguments.protocol.starts_with("grpc");
  if (!place && wants_cluster) {
    bad_input(
        "--protocol {}: there are no other tasks; start this command with trireme launch, or give "
        "--worker-hosts or --cluster",
        arguments.protocol);
  }
  if (!place && tls.is_used()) bad_input("--tls-cert has no effect: only tasks that connect over gRPC use TLS");
  if (!place) return std::nullopt;
  if (arguments.protocol == "mpi") {
    bad_input("--protocol mpi uses mpirun's ranks, not addresses; for the tasks of a cluster use grpc+mpi");
  }
  place->protocol = wants_cluster ? arguments.protocol : "grpc";
  if (place->protocol == "grpc+mpi") check_mpi_order(place->spec, place->place);
  check_is_local(place->spec, place->place);
  if (tls.is_used() && place->protocol != "grpc") {
    bad_input("--tls-cert: TLS encrypts only gRPC, but --protocol {} sends tensors another way; use grpc",
              place->protocol);
  }
  if (place->secret.empty()) place->secret = find_secret(arguments);
  place->tls = tls;
  place->join_timeout = arguments.join_timeout;
  return place;
}

std::string protocol_in_launch(const ClusterArguments& arguments) {
  check_protocol(arguments.protocol);
  check_not_by_hand(arguments);
  return arguments.protocol;
}

}  // namespace trireme::cli
