// How a training command joins other processes over the network: the options that name servers and workers, resolved
// together with the environment of a launch. Used by `trireme bench`.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "trireme/comm/world.hpp"

namespace trireme::cli {

struct ClusterArguments {
  std::string ps_hosts = {}, worker_hosts = {}, cluster_file = {}, job_name = {};
  std::optional<int> task_index = {};
  std::string protocol = "auto";
  std::string secret_file = {};
  std::string tls_cert = {}, tls_key = {}, tls_ca = {};
  double join_timeout = 60;  // seconds
};

void add_cluster_options(CLI::App& app, ClusterArguments& arguments);

// Nothing: this process is alone, or its ranks are MPI's. Error(bad_input) where options are missing, wrong or in
// contradiction to the launch that this process is part of.
std::optional<comm::ClusterPlace> resolve_cluster(const ClusterArguments& arguments);

// The protocol a launch must provide. Error(bad_input) for options that name places, as the launch places tasks.
std::string protocol_in_launch(const ClusterArguments& arguments);

}  // namespace trireme::cli
