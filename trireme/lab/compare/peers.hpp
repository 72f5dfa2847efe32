// Other frameworks as a Python interpreter reports them: configurations, and differences of their networks from ours.
// The scripts of bench/peers have everything framework-specific. Made by `trireme compare`.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "trireme/lab/study/configuration.hpp"

namespace trireme::lab {

inline constexpr const char* kPeersSchema = "trireme.peers/4";

// One way to run a framework.
struct PeerConfiguration {
  std::string name;  // "pytorch-compile"
  std::string what;  // for people
  std::string script;
  std::vector<std::string> options;
  std::map<std::string, std::string> environment;
  std::vector<std::string> modes, precisions;  // from "train", "forward"; "fp32", "bf16", ...
  bool several_workers = false;                // not only one
  std::string device;                          // "cpu" or "cuda"

  bool can_run(const Configuration& configuration) const;
};

struct PeerFramework {
  std::string name, version;
  std::string missing;  // why this interpreter lacks it; empty: it has it
  std::vector<PeerConfiguration> configurations;
};

struct PeerCatalog {
  std::string python;
  std::filesystem::path folder;      // of the scripts
  std::vector<std::string> options;  // of `trireme bench` that the scripts accept
  std::vector<std::string> unset;    // environment variables that would change the measurement
  std::vector<PeerFramework> frameworks;
  Json networks, measurement;  // what is the same and what differs, in sentences
  std::vector<std::string> notes;
};

// The scripts' folder: `given`, or next to the program as built or installed. Error(bad_input) if not found.
std::filesystem::path find_peers_folder(const std::string& given, const std::filesystem::path& program);
// The environment made by `tools/setup --peers` if the scripts' source tree has it; else the system's interpreter.
std::string usual_python(const std::filesystem::path& folder);

// Runs the interpreter. Error(bad_input) if it fails or prints something unexpected.
PeerCatalog ask_peers(const std::string& python, const std::filesystem::path& folder);
PeerCatalog parse_peers(const Json& json, const std::string& python, const std::filesystem::path& folder);

// The command that runs a cell's work in this configuration. Error(bad_input) if the scripts lack an option of the
// cell.
std::vector<std::string> peer_command(const PeerCatalog& catalog, const PeerConfiguration& peer,
                                      const Configuration& configuration);

}  // namespace trireme::lab
