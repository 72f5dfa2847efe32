// JSON that people have written: a mistake in it is theirs to find, by line and column. Used by the commands that read
// plans and options.
#pragma once

#include <string>
#include <string_view>

#include "trireme/report/run_record.hpp"

namespace trireme::cli {

// Error(bad_input) begins with the source.
report::Json parse_json(std::string_view text, const std::string& source);

}  // namespace trireme::cli
