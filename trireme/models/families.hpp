// Networks with numbers in their names. Private to models/.
#pragma once

#include <optional>

#include "trireme/models/model.hpp"

namespace trireme::networks {

// Nothing if the name is of no family, or its numbers do not suit it.
std::optional<Network> find_in_families(std::string_view name);

}  // namespace trireme::networks
