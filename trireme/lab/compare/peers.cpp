#include "trireme/lab/compare/peers.hpp"

#include <fmt/ranges.h>

#include <algorithm>

#include "trireme/base/error.hpp"
#include "trireme/cluster/child_process.hpp"

namespace trireme::lab {
namespace {

namespace fs = std::filesystem;
constexpr const char* kDescription = "describe.py";

bool has(const std::vector<std::string>& words, const std::string& word) {
  return std::ranges::find(words, word) != words.end();
}

bool is_set(const Configuration& configuration, const std::string& flag) {
  const Json* value = find(configuration, flag);
  return value != nullptr && *value == true;
}

PeerConfiguration parse_configuration(const Json& json) {
  return {.name = json.at("name"),
          .what = json.at("what"),
          .script = json.at("script"),
          .options = json.at("options"),
          .environment = json.at("environment"),
          .modes = json.at("modes"),
          .precisions = json.at("precisions"),
          .several_workers = json.at("several_workers"),
          .device = json.at("device")};
}

PeerFramework parse_framework(const Json& json) {
  PeerFramework framework{.name = json.at("name"),
                          .version = json.value("version", ""),
                          .missing = json.value("missing", ""),
                          .configurations = {}};
  for (const Json& configuration : json.value("configurations", Json::array())) {
    framework.configurations.push_back(parse_configuration(configuration));
  }
  return framework;
}

}  // namespace

bool PeerConfiguration::can_run(const Configuration& configuration) const {
  const Json* precision = find(configuration, "precision");
  const Json* workers = find(configuration, "workers");
  const Json* asked = find(configuration, "device");
  const bool runs_several = workers != nullptr && *workers != 1;
  return has(modes, is_set(configuration, "forward-only") ? "forward" : "train") &&
         has(precisions, precision == nullptr ? "fp32" : value_text(*precision)) && several_workers == runs_several &&
         device == (asked == nullptr ? "cpu" : value_text(*asked));
}

fs::path find_peers_folder(const std::string& given, const fs::path& program) {
  if (!given.empty()) {
    if (!fs::exists(fs::path(given) / kDescription)) {
      bad_input("--peers-dir: '{}' has no {}; it must be a folder such as bench/peers", given, kDescription);
    }
    return fs::absolute(given);
  }
  const fs::path below = fs::path("share") / "trireme" / "peers";
  for (const fs::path& place : {program.parent_path() / below, program.parent_path().parent_path() / below}) {
    if (fs::exists(place / kDescription)) return fs::canonical(place);
  }
  bad_input(
      "the scripts for the other frameworks do not come with this program ({}); give their folder, bench/peers in the "
      "source tree, with --peers-dir",
      (program.parent_path().parent_path() / below).string());
}

std::string usual_python(const fs::path& folder) {
  const fs::path own = folder.parent_path().parent_path() / ".venv-peers" / "bin" / "python";
  return fs::exists(own) ? own.string() : "python3";
}

PeerCatalog ask_peers(const std::string& python, const fs::path& folder) {
  if (cluster::find_program(python).empty()) {
    bad_input(
        "--python: there is no program '{}'; tools/setup --peers creates an environment with PyTorch and TensorFlow",
        python);
  }
  std::string output;
  try {
    output = cluster::command_output({python, "-B", (folder / kDescription).string()});
  } catch (const Error& error) {
    bad_input("--python: '{}' could not list its frameworks: {}", python, error.what());
  }
  const Json json = Json::parse(output, nullptr, false);
  if (!json.is_object() || json.value("schema", Json()) != kPeersSchema) {
    bad_input("--python: '{}' ran {} and gave no description of {}; is it Python 3.10 or newer?", python,
              (folder / kDescription).string(), kPeersSchema);
  }
  return parse_peers(json, python, folder);
}

PeerCatalog parse_peers(const Json& json, const std::string& python, const fs::path& folder) {
  try {
    PeerCatalog catalog{.python = python,
                        .folder = folder,
                        .options = json.at("options"),
                        .unset = json.at("unset"),
                        .frameworks = {},
                        .networks = json.at("networks"),
                        .measurement = json.at("measurement"),
                        .notes = json.at("notes")};
    for (const Json& framework : json.at("frameworks")) catalog.frameworks.push_back(parse_framework(framework));
    return catalog;
  } catch (const Json::exception& error) {
    bad_input("{}: its description of the frameworks is incomplete: {}", (folder / kDescription).string(),
              error.what());
  }
}

std::vector<std::string> peer_command(const PeerCatalog& catalog, const PeerConfiguration& peer,
                                      const Configuration& configuration) {
  std::vector<std::string> command{"/usr/bin/env"};
  for (const std::string& name : catalog.unset) command.insert(command.end(), {"-u", name});
  for (const auto& [name, value] : peer.environment) command.push_back(fmt::format("{}={}", name, value));
  command.insert(command.end(), {catalog.python, "-B", (catalog.folder / peer.script).string()});
  command.insert(command.end(), peer.options.begin(), peer.options.end());
  for (const Setting& setting : configuration) {
    if (!has(catalog.options, setting.option)) {
      bad_input("{}: only Trireme has this option; the scripts of the others accept {}. See --trireme-set",
                setting.option, fmt::join(catalog.options, ", "));
    }
    const bool is_for_others = setting.option == "workers" && !peer.several_workers;
    if (setting.value == false || is_for_others) continue;
    command.push_back("--" + setting.option);
    if (!setting.value.is_boolean()) command.push_back(value_text(setting.value));
  }
  return command;
}

}  // namespace trireme::lab
