#include "cli/option_catalog.hpp"

#include <array>

#include "cli/commands.hpp"
#include "trireme/config/tables.hpp"

namespace trireme::cli {

// Hidden options are rejected when given.
bool is_for_users(const CLI::Option& option) { return !option.get_lnames().empty() && !option.get_group().empty(); }

lab::OptionCatalog option_catalog() {
  CLI::App app;
  const std::array commands{add_bench(app), add_launch(app, {})};
  std::vector<const config::Option*> catalog;
  std::vector<std::string> refused;
  for (const Command& command : commands) {
    for (const CLI::Option* option : command.app->get_options()) {
      if (!is_for_users(*option)) continue;
      const std::string& name = option->get_lnames().front();
      const config::Option* declared = config::find_option(name);
      if (declared != nullptr && declared->role != config::Role::run) {
        catalog.push_back(declared);
      } else {
        refused.push_back(name);
      }
    }
  }
  return lab::OptionCatalog(std::move(catalog), std::move(refused));
}

}  // namespace trireme::cli
