// Fields of JSON that others wrote: absent and of another kind are the same, nothing throws. Used by whoever reads
// records.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "trireme/report/run_record.hpp"

namespace trireme::report {

using Path = std::initializer_list<const char*>;

// Null where there is none.
Json field(const Json& json, Path path);
std::optional<double> number_field(const Json& json, Path path);  // finite
std::string text_field(const Json& json, Path path);              // empty where there is none
std::vector<double> number_list(const Json& json, Path path);     // entries that are no numbers are left out

// A value as people read it: true, 32, 0.5, ring.
std::string value_text(const Json& value);
std::optional<double> value_number(const Json& value);

}  // namespace trireme::report
