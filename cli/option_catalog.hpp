// The options of `trireme bench` and `trireme launch` as data, taken from the parser itself, so that there is one list
// of them. Used by the commands that run others, `sweep` and `tune`, and by --config.
#pragma once

#include <CLI/CLI.hpp>

#include "trireme/lab/configuration.hpp"

namespace trireme::cli {

// It has a long name and is in the help.
bool is_for_users(const CLI::Option& option);
lab::OptionInfo option_info(const CLI::Option& option, bool of_launch);

// Those that a study may set. What says where results go, and what makes a run no run, is not among them.
lab::OptionCatalog option_catalog();

}  // namespace trireme::cli
