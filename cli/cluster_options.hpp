// How a training command joins other processes over the network: the options that name servers and workers, resolved
// together with the environment of a launch. Used by `trireme bench`.
#pragma once

#include <optional>
#include <string>

#include "trireme/comm/world.hpp"
#include "trireme/config/launch_options.hpp"

namespace trireme::cli {

using cluster::ClusterOptions;

// Nothing: this process is alone, or its ranks are MPI's. Error(bad_input) where options are missing, wrong or in
// contradiction to the launch that this process is part of.
std::optional<comm::ClusterPlace> resolve_cluster(const ClusterOptions& options);

// The protocol a launch must provide. Error(bad_input) for options that name places, as the launch places tasks.
std::string protocol_in_launch(const ClusterOptions& options);

}  // namespace trireme::cli
