// Fields of others' JSON, by path: never throws; a field of the wrong kind counts as absent. Where the kind of JSON is
// known, fields.hpp reads it into a struct.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "trireme/base/json.hpp"

namespace trireme {

using Path = std::initializer_list<const char*>;

Json field(const Json& json, Path path);                          // null if absent
std::optional<double> number_field(const Json& json, Path path);  // finite
std::string text_field(const Json& json, Path path);              // empty if absent
std::vector<double> number_list(const Json& json, Path path);     // skips entries that are not numbers

std::string value_text(const Json& value);  // for people: true, 32, 0.5, ring
std::optional<double> value_number(const Json& value);

}  // namespace trireme
