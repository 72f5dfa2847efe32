// The options of `trireme bench` and `trireme launch` as data, taken from the parser so that there is only one list.
// Used by `sweep` and `tune`, which run other commands, and by --config.
#pragma once

#include <CLI/CLI.hpp>

#include "trireme/lab/study/configuration.hpp"

namespace trireme::cli {

bool is_for_users(const CLI::Option& option);  // has a long name and is in the help
lab::OptionInfo option_info(const CLI::Option& option, bool of_launch);

// The options a study may set: not those that choose where results go or that prevent a normal run.
lab::OptionCatalog option_catalog();

}  // namespace trireme::cli
