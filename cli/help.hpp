// How help is laid out: descriptions are wrapped to the width of the terminal, with what an option expects and its
// default in the same words everywhere. Used by main(), and by whoever says which command is meant.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "cli/commands.hpp"

namespace trireme::cli {

class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override;
};

std::string help_text(const CLI::App& app);           // of this very command, whatever was chosen below it
std::string command_path(const CLI::App& app);        // "trireme data make"
std::string display_name(const CLI::Option& option);  // "--batch-size"; of an argument without dashes "FROM"
bool is_hidden(const CLI::App& command);

Command add_help(CLI::App& parent);

}  // namespace trireme::cli
