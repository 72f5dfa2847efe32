// Options of a table (trireme/config) on a command.
#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string_view>
#include <vector>

#include "trireme/config/option.hpp"

namespace trireme::cli {

// Writes values into the object, the struct of the option's table, which must live as long as the command.
CLI::Option* add_option(CLI::App& app, const config::Option& option, void* object);

template <typename Struct>
CLI::Option* add_option(CLI::App& app, const config::Table<Struct>& table, std::string_view name, Struct& object) {
  return add_option(app, *table.find(name), &object);
}

// All of a table, or those of a group, but for the names left out.
template <typename Struct>
void add_table(CLI::App& app, const config::Table<Struct>& table, Struct& object,
               const std::vector<std::string_view>& left_out = {}) {
  for (const config::Option& option : table) {
    if (std::ranges::find(left_out, option.name) == left_out.end()) add_option(app, option, &object);
  }
}

}  // namespace trireme::cli
