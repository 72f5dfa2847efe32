// The JSON of records, plans and protocols: keys stay in the order in which they were written. Some of it was written
// by people, or by a program that was stopped half-way: what is wrong with it is theirs to find, by line and column.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace trireme {

using Json = nlohmann::ordered_json;

// Error(bad_input) begins with the source: if it is not JSON, or nested deeper than anything that is meant to be read.
Json parse_json(std::string_view text, const std::string& source);
// The same of a file, and if it cannot be read.
Json read_json(const std::string& path);
// "-" is stdout. A file appears whole or not at all: it is written aside, synced and renamed.
void write_json(const Json& json, const std::string& path);

}  // namespace trireme
