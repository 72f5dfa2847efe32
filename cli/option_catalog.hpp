// The options of `trireme bench` and `trireme launch` for studies: those of the parser, as the tables declare them.
// Used by `sweep`, `tune` and `compare`, which run other commands.
#pragma once

#include <CLI/CLI.hpp>

#include "trireme/lab/study/configuration.hpp"

namespace trireme::cli {

bool is_for_users(const CLI::Option& option);  // has a long name and is in the help

// Those that a study may set are not of Role::run.
lab::OptionCatalog option_catalog();

}  // namespace trireme::cli
