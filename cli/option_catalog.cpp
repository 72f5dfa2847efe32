#include "cli/option_catalog.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "cli/commands.hpp"

namespace trireme::cli {
namespace {

constexpr std::array<std::string_view, 16> kNotForStudies{
    "help",       "config",   "record",   "trace",      "dry-run", "submit",       "output-dir", "program",
    "keep-going", "ps-hosts", "job-name", "task-index", "cluster", "worker-hosts", "profile",    "profile-rows"};

lab::OptionKind kind_of(const CLI::Option& option) {
  if (option.get_items_expected_max() == 0) return lab::OptionKind::flag;
  const std::string type = option.get_type_name();
  if (type == "INT" || type == "UINT") return lab::OptionKind::integer;
  return type == "FLOAT" ? lab::OptionKind::number : lab::OptionKind::text;
}

void append_options(std::vector<lab::OptionInfo>& catalog, const CLI::App& command, bool of_launch) {
  for (const CLI::Option* option : command.get_options()) {
    if (!is_for_users(*option)) continue;
    const std::string& name = option->get_lnames().front();
    if (std::ranges::find(kNotForStudies, name) != kNotForStudies.end()) continue;
    catalog.push_back(option_info(*option, of_launch));
  }
}

}  // namespace

// Hidden options are rejected when given.
bool is_for_users(const CLI::Option& option) { return !option.get_lnames().empty() && !option.get_group().empty(); }

lab::OptionInfo option_info(const CLI::Option& option, bool of_launch) {
  return {.name = option.get_lnames().front(), .kind = kind_of(option), .of_launch = of_launch};
}

lab::OptionCatalog option_catalog() {
  CLI::App app;
  const Command bench = add_bench(app), launch = add_launch(app, {});
  std::vector<lab::OptionInfo> catalog;
  append_options(catalog, *bench.app, false);
  append_options(catalog, *launch.app, true);
  return lab::OptionCatalog(std::move(catalog), {kNotForStudies.begin(), kNotForStudies.end()});
}

}  // namespace trireme::cli
