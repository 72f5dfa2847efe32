#include "cli/table_options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace trireme::cli {
namespace {

template <typename T>
CLI::Option* add(CLI::App& app, const std::string& spelling, const config::Option& option, void* object) {
  return app.add_option_function<T>(spelling, [&option, object](const T& value) { option.set(object, value); });
}

CLI::Option* add_by_kind(CLI::App& app, const std::string& spelling, const config::Option& option, void* object) {
  switch (option.kind) {
    case config::Kind::flag:
      return app.add_flag(spelling, *option.flag(object));
    case config::Kind::integer:
      return add<std::int64_t>(app, spelling, option, object);
    case config::Kind::number:
      return add<double>(app, spelling, option, object);
    case config::Kind::texts:
      return add<std::vector<std::string>>(app, spelling, option, object)->allow_extra_args(false);
    case config::Kind::text:
      break;
  }
  return add<std::string>(app, spelling, option, object);
}

}  // namespace

CLI::Option* add_option(CLI::App& app, const config::Option& option, void* object) {
  const std::string spelling = option.spelling.empty() ? "--" + option.name : option.spelling;
  CLI::Option* const added = add_by_kind(app, spelling, option, object)->description(option.help)->group(option.group);
  if (!option.names.empty()) added->type_name(fmt::format("TEXT:{{{}}}", fmt::join(option.names, ",")));
  if (!option.environment.empty()) added->envname(option.environment);
  if (const Json value = option.get(object); option.shows_default && !value.is_null()) {
    added->default_str(value.is_string()         ? value.get<std::string>()
                       : value.is_number_float() ? fmt::format("{:g}", value.get<double>())
                                                 : value.dump());
  }
  return added;
}

}  // namespace trireme::cli
