#include "trireme/lab/study/configuration.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "trireme/base/error.hpp"
#include "trireme/base/nearest_name.hpp"
#include "trireme/config/tables.hpp"

namespace trireme::lab {
namespace {

template <typename Number>
bool parse_number(const std::string& text, Json& value) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  value = number;
  return error == std::errc() && end == text.data() + text.size();
}

bool parse_as(config::Kind kind, const std::string& text, Json& value) {
  switch (kind) {
    case config::Kind::flag:
      value = text == "true";
      return text == "true" || text == "false";
    case config::Kind::integer:
      return parse_number<std::int64_t>(text, value);
    case config::Kind::number:
      return parse_number<std::int64_t>(text, value) || parse_number<double>(text, value);
    case config::Kind::text:
    case config::Kind::texts:
      value = text;
      return true;
  }
  return false;
}

}  // namespace

const config::Option* OptionCatalog::find(const std::string& name) const {
  const auto found = std::ranges::find(options_, name, &config::Option::name);
  return found == options_.end() ? nullptr : *found;
}

const config::Option& OptionCatalog::get(const std::string& name, const std::string& where) const {
  if (const config::Option* option = find(name)) return *option;
  if (std::ranges::find(refused_, name) != refused_.end()) {
    bad_input("{}: '{}' cannot be set in a study, which decides itself what to run and where results go", where, name);
  }
  std::vector<std::string> names;
  for (const config::Option* option : options_) names.push_back(option->name);
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

Json parse_value(const config::Option& option, const std::string& text, const std::string& where) {
  Json value;
  if (!parse_as(option.kind, text, value)) value = text;  // which the check refuses
  config::check(option, value, where);
  return value;
}

std::vector<std::string> command_words(const Configuration& configuration) {
  std::vector<std::string> launch{"launch"}, bench{"bench"};
  bool launches = false;
  for (const Setting& setting : configuration) {
    const config::Option* of_launch = config::launch_table().find(setting.option);
    std::vector<std::string>& words = of_launch != nullptr ? launch : bench;
    for (std::string& word : config::words_of(setting.option, setting.value)) words.push_back(std::move(word));
    launches = launches || (of_launch != nullptr && !config::is_alone(*of_launch, setting.value));
  }
  if (!launches) return bench;
  launch.emplace_back("--");
  launch.insert(launch.end(), bench.begin(), bench.end());
  return launch;
}

}  // namespace trireme::lab
