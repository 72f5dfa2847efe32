// Fields of others' JSON: never throws; a field of the wrong kind counts as absent. Used by readers of records.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "trireme/report/run_record.hpp"

namespace trireme::report {

using Path = std::initializer_list<const char*>;

Json field(const Json& json, Path path);                          // null if absent
std::optional<double> number_field(const Json& json, Path path);  // finite
std::string text_field(const Json& json, Path path);              // empty if absent
std::vector<double> number_list(const Json& json, Path path);     // skips entries that are not numbers

std::string value_text(const Json& value);  // for people: true, 32, 0.5, ring
std::optional<double> value_number(const Json& value);

}  // namespace trireme::report
