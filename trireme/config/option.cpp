#include "trireme/config/option.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "trireme/base/error.hpp"

namespace trireme::config {
namespace {

const char* kind_text(Kind kind) {
  constexpr std::array<const char*, 5> kTexts{"true or false", "a whole number", "a number", "text", "a list of texts"};
  return kTexts.at(static_cast<std::size_t>(kind));
}

bool suits(Kind kind, const Json& value) {
  switch (kind) {
    case Kind::flag:
      return value.is_boolean();
    case Kind::integer:
      return value.is_number_integer();
    case Kind::number:
      return value.is_number();
    case Kind::text:  // "batch-split" is text that may be a number
      return value.is_string() || value.is_number();
    case Kind::texts:
      return value.is_array() && std::ranges::all_of(value, [](const Json& each) { return each.is_string(); });
  }
  return false;
}

bool contains(const Range& range, double value) {
  return std::isfinite(value) && (range.above ? value > range.low : value >= range.low) &&
         (range.below ? value < range.high : value <= range.high);
}

std::string number_text(double value) {
  const bool is_whole = std::abs(value) < 1e15 && value == std::floor(value);
  return is_whole ? fmt::format("{}", static_cast<std::int64_t>(value)) : fmt::format("{}", value);
}

std::string wanted(Kind kind, const Range& range) {
  const char* const number = kind == Kind::integer ? "whole number" : "number";
  const bool has_low = std::isfinite(range.low), has_high = std::isfinite(range.high);
  if (has_low && has_high && !range.above && !range.below) {
    return fmt::format("must be a {} from {} to {}", number, number_text(range.low), number_text(range.high));
  }
  const std::string low = !has_low      ? ""
                          : range.above ? fmt::format("above {}", number_text(range.low))
                                        : fmt::format("{} or more", number_text(range.low));
  const std::string high = !has_high     ? ""
                           : range.below ? fmt::format("below {}", number_text(range.high))
                                         : fmt::format("at most {}", number_text(range.high));
  return fmt::format("must be a {}, {}{}{}", number, low, low.empty() || high.empty() ? "" : " and ", high);
}

// Empty: the value is allowed.
std::string problem(const Option& option, const Json& value) {
  if (value.is_null()) return "";
  if (option.range && value.is_number() && !contains(*option.range, value.get<double>())) {
    return wanted(option.kind, *option.range);
  }
  if (!option.names.empty() && value.is_string() &&
      std::ranges::find(option.names, value.get<std::string>()) == option.names.end()) {
    return fmt::format("must be one of {}", fmt::join(option.names, ", "));
  }
  return "";
}

std::string text_of(const Json& value) {
  if (value.is_number_float()) return fmt::format("{}", value.get<double>());
  return value.is_string() ? value.get<std::string>() : value.dump();
}

}  // namespace

std::string Option::key() const {
  std::string key = name;
  std::ranges::replace(key, '-', '_');
  return key;
}

void check(const Option& option, const Json& value) {
  if (const std::string what = problem(option, value); !what.empty()) {
    bad_input("--{} {}: {}", option.name, text_of(value), what);
  }
}

void check(const Option& option, const Json& value, const std::string& where) {
  if (!suits(option.kind, value)) {
    bad_input("{}: {} is {}; it cannot be {}", where, option.name, kind_text(option.kind), value.dump());
  }
  if (const std::string what = problem(option, value); !what.empty()) {
    bad_input("{}: {} {}: {}", where, option.name, text_of(value), what);
  }
}

std::vector<std::string> words_of(const std::string& name, const Json& value) {
  if (value.is_boolean()) return {fmt::format("--{}{}", name, value.get<bool>() ? "" : "=false")};
  if (!value.is_array()) return {fmt::format("--{}", name), text_of(value)};
  std::vector<std::string> words;
  for (const Json& each : value) words.push_back(fmt::format("--{}={}", name, text_of(each)));
  return words;
}

bool is_alone(const Option& option, const Json& value) { return value == false || value == option.alone; }

void add(std::vector<Option>& all, const char* group, std::vector<Option> options) {
  for (Option& each : options) {
    each.group = group;
    all.push_back(std::move(each));
  }
}

std::string label_of(const Option& option, const Json& value) {
  const std::size_t bar = option.label.find('|');
  std::string label = option.label;
  if (bar != std::string::npos) {
    const bool is_second = option.kind == Kind::flag ? value == true : value != 1;
    label = is_second ? option.label.substr(bar + 1) : option.label.substr(0, bar);
  }
  const std::size_t place = label.find("{}");
  return place == std::string::npos ? label : label.replace(place, 2, text_of(value));
}

}  // namespace trireme::config
