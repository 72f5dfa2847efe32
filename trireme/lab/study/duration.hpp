// Durations as people write them: "20m", "1h30m", "45s". Used for budgets and limits of studies and by progress lines.
#pragma once

#include <string>

namespace trireme::lab {

// Returns seconds. Error(bad_input) begins with `where`.
double parse_duration(const std::string& text, const std::string& where);
std::string duration_text(double seconds);   // to the second: "1h30m"; below a minute to a tenth: "4.5s"
std::string time_left_text(double seconds);  // "3m20s left"; at least a second

}  // namespace trireme::lab
