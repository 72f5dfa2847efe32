// `--config FILE`: options of `bench`, `train` and `launch` from a JSON file, such as `tune` writes. Before parsing,
// main() inserts the file's options into the command line unless the user gave them, so the same checks apply.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace trireme::cli {

void add_config_option(CLI::App& command);  // for the help only: parsing sees the file's options

// For `launch`, options that are not its own go to the command after --. `is_launched`: a launch started this process,
// so launch options in the file are ignored. Error(bad_input) names the file, the key and what is allowed.
std::vector<std::string> with_config(std::vector<std::string> words, const CLI::App& app, bool is_launched);

}  // namespace trireme::cli
