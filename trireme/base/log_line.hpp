// A line for the user on stderr, beside what a command prints: warnings, errors, what a task of a job has to say. Used
// by whoever goes on, or ends, with something that a person should know.
#pragma once

#include <string>

namespace trireme {

// "trireme: <text>". Where stderr cannot be written, as on a full disk, the line is lost and nothing else: no work ends
// because nobody could be told about it.
void log_line(const std::string& text) noexcept;

}  // namespace trireme
