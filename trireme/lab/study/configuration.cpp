#include "trireme/lab/study/configuration.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "trireme/base/error.hpp"
#include "trireme/base/nearest_name.hpp"

namespace trireme::lab {
namespace {

// For one that no table declares: its kind is all that is known.
config::Option entry_of(const OptionInfo& option) {
  return option.declared != nullptr ? *option.declared : config::Option{.name = option.name, .kind = option.kind};
}

template <typename Number>
bool parse_number(const std::string& text, Json& value) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  value = number;
  return error == std::errc() && end == text.data() + text.size();
}

bool parse_as(OptionKind kind, const std::string& text, Json& value) {
  switch (kind) {
    case OptionKind::flag:
      value = text == "true";
      return text == "true" || text == "false";
    case OptionKind::integer:
      return parse_number<std::int64_t>(text, value);
    case OptionKind::number:
      return parse_number<std::int64_t>(text, value) || parse_number<double>(text, value);
    case OptionKind::text:
      value = text;
      return true;
  }
  return false;
}

// A single worker needs no launch.
bool asks_for_launch(const Setting& setting, const OptionCatalog& options) {
  const OptionInfo* option = options.find(setting.option);
  if (option == nullptr || !option->of_launch || setting.value == false) return false;
  if (setting.option == "workers") return setting.value != 1;
  return setting.option != "ps" || setting.value != 0;
}

}  // namespace

const OptionInfo* OptionCatalog::find(const std::string& name) const {
  const auto found = std::ranges::find(options_, name, &OptionInfo::name);
  return found == options_.end() ? nullptr : &*found;
}

const OptionInfo& OptionCatalog::get(const std::string& name, const std::string& where) const {
  if (const OptionInfo* option = find(name)) return *option;
  if (std::ranges::find(refused_, name) != refused_.end()) {
    bad_input("{}: '{}' cannot be set in a study, which decides itself what to run and where results go", where, name);
  }
  std::vector<std::string> names;
  for (const OptionInfo& option : options_) names.push_back(option.name);
  bad_input(
      "{}: there is no option '{}'{} Options are those of `trireme bench --help` and `trireme launch --help`, without "
      "the leading dashes",
      where, name, suggestion(name, names));
}

const Json* find(const Configuration& configuration, const std::string& option) {
  const auto found = std::ranges::find(configuration, option, &Setting::option);
  return found == configuration.end() ? nullptr : &found->value;
}

std::int64_t whole_number_of(const Configuration& configuration, const std::string& option, std::int64_t otherwise) {
  const Json* value = find(configuration, option);
  return value != nullptr && value->is_number_integer() ? value->get<std::int64_t>() : otherwise;
}

std::string value_text(const Json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

std::string to_text(const Configuration& configuration) {
  std::string text;
  for (const Setting& setting : configuration) {
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", setting.option, value_text(setting.value));
  }
  return text;
}

void check_value(const OptionInfo& option, const Json& value, const std::string& where) {
  config::check(entry_of(option), value, where);
}

Json parse_value(const OptionInfo& option, const std::string& text, const std::string& where) {
  Json value;
  if (!parse_as(option.kind, text, value)) value = text;  // which the check refuses
  check_value(option, value, where);
  return value;
}

std::vector<std::string> command_words(const Configuration& configuration, const OptionCatalog& options) {
  std::vector<std::string> launch{"launch"}, bench{"bench"};
  bool launches = false;
  for (const Setting& setting : configuration) {
    const OptionInfo* option = options.find(setting.option);
    std::vector<std::string>& words = option != nullptr && option->of_launch ? launch : bench;
    for (std::string& word : config::words_of(setting.option, setting.value)) words.push_back(std::move(word));
    launches = launches || asks_for_launch(setting, options);
  }
  if (!launches) return bench;
  launch.emplace_back("--");
  launch.insert(launch.end(), bench.begin(), bench.end());
  return launch;
}

}  // namespace trireme::lab
