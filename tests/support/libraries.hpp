// Which optional libraries this build has, by the names of `trireme doctor`. Used by tests of what needs them.
#pragma once

#include <algorithm>
#include <string>

#include "trireme/backend/registry.hpp"
#include "trireme/comm/world.hpp"
#include "trireme/data/formats.hpp"

namespace trireme::testkit {

inline bool has_library(const std::string& library) {
  const auto is_in = [&](const auto& versions) {
    return std::ranges::any_of(versions, [&](const auto& known) { return known.first == library; });
  };
  return is_in(library_versions()) || is_in(comm::transport_versions()) || is_in(data::library_versions());
}

}  // namespace trireme::testkit
