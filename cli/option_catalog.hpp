// The options of `trireme bench` and `trireme launch` as data, taken from the parser itself, so that there is one list
// of them. Used by the commands that run others: `sweep`.
#pragma once

#include "trireme/lab/configuration.hpp"

namespace trireme::cli {

// Those that a study may set. What says where results go, and what makes a run no run, is not among them.
lab::OptionCatalog option_catalog();

}  // namespace trireme::cli
