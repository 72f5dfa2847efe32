#include "cli/option_catalog.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "cli/commands.hpp"
#include "trireme/config/tables.hpp"

namespace trireme::cli {
namespace {

// Beside the outputs of the tables: what a command or a job is, not how it trains.
constexpr std::array<std::string_view, 14> kNotForStudies{
    "help",       "config",  "record",     "trace",    "dry-run",  "submit",     "program",
    "keep-going", "cluster", "output-dir", "ps-hosts", "job-name", "task-index", "worker-hosts"};

bool is_for_studies(const std::string& name) {
  const config::Option* declared = config::find_option(name);
  if (declared != nullptr) return declared->role != config::Role::output;
  return std::ranges::find(kNotForStudies, name) == kNotForStudies.end();
}

lab::OptionKind kind_of(const CLI::Option& option) {
  if (option.get_items_expected_max() == 0) return lab::OptionKind::flag;
  const std::string type = option.get_type_name();
  if (type == "INT" || type == "UINT") return lab::OptionKind::integer;
  return type == "FLOAT" ? lab::OptionKind::number : lab::OptionKind::text;
}

void append_options(std::vector<lab::OptionInfo>& catalog, std::vector<std::string>& refused, const CLI::App& command,
                    bool of_launch) {
  for (const CLI::Option* option : command.get_options()) {
    if (!is_for_users(*option)) continue;
    if (is_for_studies(option->get_lnames().front())) {
      catalog.push_back(option_info(*option, of_launch));
    } else {
      refused.push_back(option->get_lnames().front());
    }
  }
}

}  // namespace

// Hidden options are rejected when given.
bool is_for_users(const CLI::Option& option) { return !option.get_lnames().empty() && !option.get_group().empty(); }

lab::OptionInfo option_info(const CLI::Option& option, bool of_launch) {
  const std::string& name = option.get_lnames().front();
  return {.name = name,
          .kind = kind_of(option),
          .of_launch = of_launch,
          .declared = of_launch ? nullptr : config::find_option(name)};
}

lab::OptionCatalog option_catalog() {
  CLI::App app;
  const Command bench = add_bench(app), launch = add_launch(app, {});
  std::vector<lab::OptionInfo> catalog;
  std::vector<std::string> refused;
  append_options(catalog, refused, *bench.app, false);
  append_options(catalog, refused, *launch.app, true);
  return lab::OptionCatalog(std::move(catalog), std::move(refused));
}

}  // namespace trireme::cli
