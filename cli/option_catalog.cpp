#include "cli/option_catalog.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "cli/commands.hpp"

namespace trireme::cli {
namespace {

constexpr std::array<std::string_view, 15> kNotForStudies{
    "help",     "record",   "trace",      "dry-run", "submit",       "output-dir", "program",     "keep-going",
    "ps-hosts", "job-name", "task-index", "cluster", "worker-hosts", "profile",    "profile-rows"};

lab::OptionKind kind_of(const CLI::Option& option) {
  if (option.get_items_expected_max() == 0) return lab::OptionKind::flag;
  const std::string type = option.get_type_name();
  if (type == "INT" || type == "UINT") return lab::OptionKind::integer;
  return type == "FLOAT" ? lab::OptionKind::number : lab::OptionKind::text;
}

void append_options(std::vector<lab::OptionInfo>& catalog, const CLI::App& command, bool of_launch) {
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_lnames().empty() || option->get_group().empty()) continue;  // hidden ones are refused
    const std::string& name = option->get_lnames().front();
    if (std::find(kNotForStudies.begin(), kNotForStudies.end(), name) != kNotForStudies.end()) continue;
    catalog.push_back({.name = name, .kind = kind_of(*option), .of_launch = of_launch});
  }
}

}  // namespace

lab::OptionCatalog option_catalog() {
  CLI::App app;
  const Command bench = add_bench(app), launch = add_launch(app, {});
  std::vector<lab::OptionInfo> catalog;
  append_options(catalog, *bench.app, false);
  append_options(catalog, *launch.app, true);
  return lab::OptionCatalog(std::move(catalog));
}

}  // namespace trireme::cli
