// `--config FILE`: options of `bench`, `train` and `launch` from a JSON file, as `tune` writes one. The file's options
// become words of the command line where the user has not given them, before anything is parsed: what a file may say
// is what the command line may, with the same checks. Used by main().
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace trireme::cli {

// For the help; the words of the file are in its place when the command line is parsed.
void add_config_option(CLI::App& command);

// Of a `launch` the options that are not its own go to the command after --. `is_launched`: others have started this
// command, so what the file says about starting it is of no concern. Error(bad_input) names the file, the key and what
// is allowed.
std::vector<std::string> with_config(std::vector<std::string> words, const CLI::App& app, bool is_launched);

}  // namespace trireme::cli
