#include "cli/cluster_options.hpp"

#include <algorithm>
#include <array>
#include <filesystem>

#include "trireme/base/error.hpp"
#include "trireme/cluster/environment.hpp"
#include "trireme/cluster/secret.hpp"
#include "trireme/comm/world.hpp"
#include "trireme/config/tables.hpp"

namespace trireme::cli {
namespace {

void check_values(const ClusterOptions& options) {
  if (options.protocol == "grpc+verbs") bad_input("--protocol grpc+verbs: use grpc+ucx for RDMA");
  config::cluster_table().check(options);
}

// The first option that says where the tasks are; empty: none. Studies cannot set these either.
std::string option_given_by_hand(const ClusterOptions& options) {
  for (const config::Option& each : config::cluster_table()) {
    if (each.role == config::Role::run && !each.get(&options).is_null()) return "--" + each.name;
  }
  return "";
}

void check_not_by_hand(const ClusterOptions& options) {
  if (const std::string option = option_given_by_hand(options); !option.empty()) {
    bad_input("{}: `trireme launch` tells its tasks where they are; leave it out", option);
  }
}

comm::ClusterDescription description_by_hand(const ClusterOptions& options) {
  if (options.cluster_file.empty()) {
    return {.spec = comm::cluster_from_lists(options.worker_hosts, options.ps_hosts)};
  }
  if (!options.worker_hosts.empty() || !options.ps_hosts.empty()) {
    bad_input("--cluster and --{} both name the tasks; leave one of them out",
              options.worker_hosts.empty() ? "ps-hosts" : "worker-hosts");
  }
  return comm::read_cluster_file(options.cluster_file);
}

// From options, from the file, or from mpirun, which started one process per task in rank order.
comm::TaskPlace place_by_hand(const ClusterOptions& options, const comm::ClusterDescription& description) {
  const bool has_job = !options.job_name.empty(), has_index = options.task_index.has_value();
  if (has_job != has_index) {
    bad_input("--job-name and --task-index go together; {} is missing", has_job ? "--task-index" : "--job-name");
  }
  if (has_job) return {.job = options.job_name, .index = static_cast<int>(*options.task_index)};
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

comm::TlsFiles tls_files(const ClusterOptions& options) {
  const std::array<std::pair<const char*, std::string>, 3> files{
      {{"--tls-cert", options.tls_cert}, {"--tls-key", options.tls_key}, {"--tls-ca", options.tls_ca}}};
  const auto is_given = [](const auto& file) { return !file.second.empty(); };
  if (std::ranges::none_of(files, is_given)) return {};
  for (const auto& [option, path] : files) {
    if (path.empty()) bad_input("--tls-cert, --tls-key and --tls-ca go together; {} is missing", option);
    if (!std::filesystem::exists(path)) bad_input("{} {}: there is no such file", option, path);
  }
  return {.certificate = options.tls_cert, .key = options.tls_key, .authority = options.tls_ca};
}

std::string find_secret(const ClusterOptions& options) {
  const std::string told = cluster::environment_variable(cluster::kJobSecretVariable);
  if (!told.empty() && !options.secret_file.empty()) {
    bad_input("--secret-file and the variable {} both give the secret of the job; leave one of them out",
              cluster::kJobSecretVariable);
  }
  if (!options.secret_file.empty()) return cluster::read_secret_file(options.secret_file);
  if (told.empty()) {
    bad_input(
        "the tasks of a job need a secret to recognize each other; make one with (umask 077; head -c 32 /dev/urandom | "
        "base64 > job.secret) and give it to all tasks, with --secret-file job.secret");
  }
  cluster::check_secret(told, fmt::format("the variable {}", cluster::kJobSecretVariable));
  return told;
}

// Where the tasks are, if anything says so, and which one this is.
std::optional<comm::ClusterPlace> find_place(const ClusterOptions& options) {
  if (cluster::is_launched()) {
    check_not_by_hand(options);
    return cluster::place_in_launch();
  }
  const std::string option = option_given_by_hand(options);
  if (option.empty()) return std::nullopt;
  if (options.worker_hosts.empty() && options.ps_hosts.empty() && options.cluster_file.empty()) {
    bad_input("{} has no effect without --worker-hosts or --cluster", option);
  }
  const comm::ClusterDescription description = description_by_hand(options);
  comm::ClusterPlace place{.spec = description.spec, .place = place_by_hand(options, description)};
  check_place(place.spec, place.place, "--job-name", "--task-index");
  return place;
}

}  // namespace

std::optional<comm::ClusterPlace> resolve_cluster(const ClusterOptions& options) {
  check_values(options);
  std::optional<comm::ClusterPlace> place = find_place(options);
  const comm::TlsFiles tls = tls_files(options);
  const bool wants_cluster = options.protocol.starts_with("grpc");
  if (!place && wants_cluster) {
    bad_input(
        "--protocol {}: there are no other tasks; start this command with trireme launch, or give "
        "--worker-hosts or --cluster",
        options.protocol);
  }
  if (!place && tls.is_used()) bad_input("--tls-cert has no effect: only tasks that connect over gRPC use TLS");
  if (!place) return std::nullopt;
  if (options.protocol == "mpi") {
    bad_input("--protocol mpi uses mpirun's ranks, not addresses; for the tasks of a cluster use grpc+mpi");
  }
  place->protocol = wants_cluster ? options.protocol : "grpc";
  if (place->protocol == "grpc+mpi") check_mpi_order(place->spec, place->place);
  check_is_local(place->spec, place->place);
  if (tls.is_used() && place->protocol != "grpc") {
    bad_input("--tls-cert: TLS encrypts only gRPC, but --protocol {} sends tensors another way; use grpc",
              place->protocol);
  }
  if (place->secret.empty()) place->secret = find_secret(options);
  place->tls = tls;
  place->join_timeout = options.join_timeout;
  return place;
}

std::string protocol_in_launch(const ClusterOptions& options) {
  check_values(options);
  check_not_by_hand(options);
  return options.protocol;
}

}  // namespace trireme::cli
