// JSON that others wrote: people, or a program that was stopped half-way. What is wrong with it is theirs to find, by
// line and column. Used by who reads plans, options, records and traces.
#pragma once

#include <string>
#include <string_view>

#include "trireme/report/run_record.hpp"

namespace trireme::report {

// Error(bad_input) begins with the source: where it is no JSON, or nested deeper than anything that is meant to be
// read.
Json parse_json(std::string_view text, const std::string& source);
// The same of a file, and where it cannot be read.
Json read_json(const std::string& path);

}  // namespace trireme::report
