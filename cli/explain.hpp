// What is wrong with a command line, in the words of who typed it: what is wrong, what is allowed, where to read on.
// The parser's own messages are for programmers. Used by main() and `trireme help`.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace trireme::cli {

// `app` is the program, after the parse that failed.
std::string explain(const CLI::App& app, const CLI::ParseError& error);

// Error(bad_input) for what the parser takes without a word: `--data-dir=`, which would swallow the next word, before
// parsing; empty values, options in place of a value, octal numbers and those beyond 64 bits after it.
void check_words(const CLI::App& app, const std::vector<std::string>& words);
void check_values(const CLI::App& app);

// "unknown command 'benhc'; did you mean ...": `app` has no such command.
std::string unknown_command(const CLI::App& app, const std::string& given);

}  // namespace trireme::cli
