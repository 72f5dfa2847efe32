// Help layout: wraps descriptions to the terminal width and words expected values and defaults the same everywhere.
// Manual pages say the same. Used by main() and by messages that name a command.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "cli/commands.hpp"

namespace trireme::cli {

class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override;
};

std::string help_text(const CLI::App& app);           // of this command, whichever subcommand was chosen
std::string command_path(const CLI::App& app);        // "trireme data make"
std::string display_name(const CLI::Option& option);  // "--batch-size"; for a positional argument "FROM"
bool is_hidden(const CLI::App& command);

Command add_help(CLI::App& parent);

// Errors of a command line in the user's terms: what is wrong, what is allowed, where to read more. The parser's own
// messages are written for programmers.
std::string explain(const CLI::App& app, const CLI::ParseError& error);  // after the failed parse

// Error(bad_input) for what the parser accepts silently: before parsing `--data-dir=`, which would swallow the next
// word; after it empty values, options in place of a value, octal numbers and numbers beyond 64 bits.
void check_words(const CLI::App& app, const std::vector<std::string>& words);
void check_values(const CLI::App& app);

std::string unknown_command(const CLI::App& app, const std::string& given);  // "...; did you mean ..."

}  // namespace trireme::cli
