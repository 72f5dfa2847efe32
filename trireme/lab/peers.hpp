// Other frameworks on this machine, as a Python interpreter describes them: which it has, in which configurations they
// can run, and what differs between their networks and ours. The scripts are those of bench/peers, and all that is
// particular to a framework is known to them alone. Made by `trireme compare`.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "trireme/lab/configuration.hpp"

namespace trireme::lab {

inline constexpr const char* kPeersSchema = "trireme.peers/3";

// One way to run a framework.
struct PeerConfiguration {
  std::string name;  // "pytorch-compile"
  std::string what;  // for people
  std::string script;
  std::vector<std::string> options;
  std::map<std::string, std::string> environment;
  std::vector<std::string> modes, precisions;  // of "train", "forward"; "fp32", "bf16"
  bool several_workers = false;                // instead of one

  bool can_run(const Configuration& configuration) const;
};

struct PeerFramework {
  std::string name, version;
  std::string missing;  // why this interpreter has none; empty: it has
  std::vector<PeerConfiguration> configurations;
};

struct PeerCatalog {
  std::string python;
  std::filesystem::path folder;      // of the scripts
  std::vector<std::string> options;  // of `trireme bench` that the scripts take
  std::vector<std::string> unset;    // variables of the environment that would change what is measured
  std::vector<PeerFramework> frameworks;
  Json networks, measurement;  // what is the same and what differs, in sentences
  std::vector<std::string> notes;
};

// Where the scripts are: `given`, or beside the program as built or installed. Error(bad_input) where they are not.
std::filesystem::path find_peers_folder(const std::string& given, const std::filesystem::path& program);
// The environment that `tools/setup --peers` makes, where the scripts are those of a source tree that has it; else the
// system's interpreter.
std::string usual_python(const std::filesystem::path& folder);

// Runs the interpreter. Error(bad_input) where that is impossible or it says something else.
PeerCatalog ask_peers(const std::string& python, const std::filesystem::path& folder);
PeerCatalog parse_peers(const Json& json, const std::string& python, const std::filesystem::path& folder);

// What runs this configuration of a framework on the work of a cell. Error(bad_input) where the cell sets an option
// that the scripts do not have.
std::vector<std::string> peer_command(const PeerCatalog& catalog, const PeerConfiguration& peer,
                                      const Configuration& configuration);

}  // namespace trireme::lab
