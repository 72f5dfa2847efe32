// Error messages for a wrong command line, in the user's terms: what is wrong, what is allowed, where to read more. The
// parser's own messages are written for programmers. Used by main() and `trireme help`.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace trireme::cli {

std::string explain(const CLI::App& app, const CLI::ParseError& error);  // after the failed parse

// Error(bad_input) for what the parser accepts silently: before parsing `--data-dir=`, which would swallow the next
// word; after it empty values, options in place of a value, octal numbers and numbers beyond 64 bits.
void check_words(const CLI::App& app, const std::vector<std::string>& words);
void check_values(const CLI::App& app);

std::string unknown_command(const CLI::App& app, const std::string& given);  // "...; did you mean ..."

}  // namespace trireme::cli
