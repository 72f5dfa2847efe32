// JSON of records, plans and protocols; keys keep their order. Errors give line and column for human authors.
#pragma once

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace trireme {

using Json = nlohmann::ordered_json;

// Error(bad_input), starting with the source, if it is not JSON or nested too deeply.
Json parse_json(std::string_view text, const std::string& source);
Json read_json(const std::string& path);  // also Error(bad_input) if the file cannot be read
// "-" is stdout. Files are replaced atomically: written aside, synced and renamed.
void write_json(const Json& json, const std::string& path);
// Error(bad_input) if write_json could not write there; leaves nothing behind. Call before a long run.
void check_writable(const std::string& path, const std::string& what = "the record");

// Fields of others' JSON, by path: never throws; a field of the wrong kind counts as absent. Where the kind of JSON is
// known, fields.hpp reads it into a struct.
using Path = std::initializer_list<const char*>;

Json field(const Json& json, Path path);                          // null if absent
std::optional<double> number_field(const Json& json, Path path);  // finite
std::string text_field(const Json& json, Path path);              // empty if absent

std::string value_text(const Json& value);  // for people: true, 32, 0.5, ring
std::optional<double> value_number(const Json& value);

}  // namespace trireme
