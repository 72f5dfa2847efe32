// Shell completion: the shell asks the program itself, which knows its commands, options and values.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "cli/commands.hpp"

namespace trireme::cli {

// What the last word, which may be empty, can become; the words follow the program's name. Nothing: any file.
std::vector<std::string> completions(const CLI::App& program, const std::vector<std::string>& words);

std::vector<Command> add_completion(CLI::App& program);  // `completion SHELL`, and the hidden command its scripts call

}  // namespace trireme::cli
